import { isGrammarWord } from './grammar_words.ts';
import type { GrammarWord, Mention } from './mentions.ts';
import type { NameIndex } from './name_index.ts';
import type { Word } from './words.ts';

/** Maximum words of a name. */
const maxNameWords = 5;

/** Converts the words of a prompt to names, values and words of the rules. */
export function nameMentions(words: readonly Word[], index: NameIndex): readonly (Mention | GrammarWord)[] {
  const named: (Mention | GrammarWord)[] = [];
  for (let at = 0; at < words.length;) {
    const { mention, length } = longestMention(words, at, index);
    named.push(mention);
    at += length;
  }
  return named.map((mention) =>
    mention.kind === 'text' && !mention.quoted ? nameWithPart(mention, index) : mention,
  );
}

interface Captures {
  readonly mention: Mention | GrammarWord;
  readonly length: number;
}

/** The longest name that starts at a word, else the word itself. */
function longestMention(words: readonly Word[], at: number, index: NameIndex): Captures {
  const first = words[at];
  if (first === undefined) throw new Error('No word is left.');
  for (let length = first.kind === 'quoted' ? 1 : maxNameWords; length > 0; length--) {
    const several = words.slice(at, at + length);
    if (several.length < length || !canBeName(several)) continue;
    const mention = index.exact(several.map(({ text }) => text).join(' '));
    if (mention) return { mention, length };
  }
  return { mention: mentionOfWord(first), length: 1 };
}

/** Words of the rules are names only together with others: `load time`, not `time`. */
function canBeName(words: readonly Word[]): boolean {
  const [first] = words;
  if (words.length === 1 && first?.kind === 'quoted') return true;
  return (
    words.every(({ kind }) => kind === 'word' || kind === 'number') &&
    words.some((word) => word.kind === 'word' && !isGrammar(word))
  );
}

const isGrammar = ({ kind, text }: Word): boolean => kind === 'word' && isGrammarWord(text.toLowerCase());

function mentionOfWord(word: Word): Mention | GrammarWord {
  const { kind, text } = word;
  if (kind === 'number' || kind === 'date') return { kind, said: text };
  if (kind === 'sign' || isGrammar(word)) return { kind: 'grammar', word: text.toLowerCase() };
  return { kind: 'text', said: text, quoted: kind === 'quoted', candidates: [] };
}

/** `purchases` is `purchase_completed` if no other name contains that part. */
function nameWithPart(mention: Extract<Mention, { kind: 'text' }>, index: NameIndex): Mention {
  const names = index.parts(mention.said);
  const [only] = names;
  return names.length === 1 && only ? only : { ...mention, candidates: names.map(nameOf) };
}

const nameOf = (mention: Mention): string =>
  mention.kind === 'event' ? mention.name : mention.kind === 'property' ? mention.property.key : mention.said;

import { isGrammarWord } from './grammar_words.ts';
import type { GrammarWord, Mention } from './mentions.ts';
import type { NameIndex } from './name_index.ts';
import type { Word } from './words.ts';

/** The most words that a name has. */
const maxNameLength = 5;

/** A prompt's words as names, values and words of the rules. */
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

/** The name of as many words as possible from here on, else the one word as it is. */
function longestMention(words: readonly Word[], at: number, index: NameIndex): Captures {
  const first = words[at];
  if (first === undefined) throw new Error('No word is left.');
  for (let length = first.kind === 'quoted' ? 1 : maxNameLength; length > 0; length--) {
    const several = words.slice(at, at + length);
    if (several.length < length || !canBeName(several)) continue;
    const mention = index.exact(several.map(({ text }) => text).join(' '));
    if (mention) return { mention, length };
  }
  return { mention: mentionOfWord(first), length: 1 };
}

/** Words of the rules are names together with others only: `load time`, not `time`. */
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

/** `purchases` is `purchase_completed` where no other name has that part. */
function nameWithPart(mention: Extract<Mention, { kind: 'text' }>, index: NameIndex): Mention {
  const names = index.parts(mention.said);
  const [only] = names;
  return names.length === 1 && only ? only : { ...mention, candidates: names.map(nameOf) };
}

const nameOf = (mention: Mention): string =>
  mention.kind === 'event' ? mention.name : mention.kind === 'property' ? mention.property.key : mention.said;

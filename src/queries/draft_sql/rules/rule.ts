import type { Draft, Unit } from '../draft.ts';
import type { GrammarWord, MeantProperty, Mention } from '../naming/mentions.ts';

/** What a rule found: the names and words that stand at the named places of its pattern. */
export interface Found {
  event(place?: string): string;
  property(place?: string): MeantProperty;
  /** What stands there, whatever it is, as it is written; of a known value its own spelling. */
  text(place?: string): string;
  value(place?: string): Extract<Mention, { kind: 'value' }>;
  number(place?: string): number;
  unit(place?: string): Unit;
  /** A word of the rules; the empty text where it is left out. */
  word(place: string): string;
}

/** What some words mean. */
export interface Rule {
  readonly says: RegExp;
  /** Null where the words do not mean that after all. */
  readonly means: (found: Found, draft: Draft) => Partial<Draft> | null;
}

const people = String.raw`(?:users?|persons?|people|visitors?|customers?)`;
const prepositions = 'in|on|over|for|during|within|from|of|at|to|through|throughout|across';
const units = 'minute|hour|day|week|month|quarter|year';

/**
 * A rule from its pattern, in which `{event}`, `{property}`, `{value}`, `{number}` and `{date}` stand for names and values,
 * `{any}` for any of them but events, `{anything}` for these too, `{unit}` for a unit of time, `{people}` for a word for people and `{in}` for a preposition that may be
 * left out. `{a:event}` gives the place a name.
 */
export const rule = (pattern: string, means: Rule['means']): Rule => {
  const says = pattern.replaceAll(/\{(?:(\w+):)?(\w+)\}/g, (_, place: string | undefined, kind: string) => {
    const name = place ?? kind;
    if (kind === 'people') return people;
    if (kind === 'in') return `(?:(?:${prepositions}) )?(?:the )?`;
    if (kind === 'unit') return `(?<${name}>${units})s?`;
    if (kind === 'any') return String.raw`<(?:property|value|number|date|text):(?<${name}>\d+)>`;
    if (kind === 'anything') return String.raw`<\w+:(?<${name}>\d+)>`;
    return String.raw`<${kind}:(?<${name}>\d+)>`;
  });
  return { says: new RegExp(`(?<![^ ])(?:${says})(?![^ ])`), means };
};

/** Where several words have one meaning. */
export const rules = (meanings: Readonly<Record<string, Partial<Draft>>>): readonly Rule[] =>
  Object.entries(meanings).map(([pattern, meaning]) => rule(pattern, () => meaning));

/** A prompt's words as rules read them: `how many <event:0> {in} the last <number:1> days`. */
export const readableText = (mentions: readonly (Mention | GrammarWord)[]): string =>
  mentions
    .map((mention, index) => (mention.kind === 'grammar' ? mention.word : `<${mention.kind}:${index}>`))
    .join(' ');

/** What was found by a match in the text of these mentions. */
export function foundIn(match: RegExpExecArray, mentions: readonly (Mention | GrammarWord)[]): Found {
  const groups = match.groups ?? {};
  const mentionAt = (place: string): Mention => {
    const mention = mentions[Number(groups[place])];
    if (mention === undefined || mention.kind === 'grammar') throw new Error(`Nothing stands at ${place}.`);
    return mention;
  };
  const ofKind = <Kind extends Mention['kind']>(
    kind: Kind,
    place: string,
  ): Extract<Mention, { kind: Kind }> => {
    const mention = mentionAt(place);
    if (mention.kind !== kind) throw new Error(`No ${kind} stands at ${place}.`);
    return mention as Extract<Mention, { kind: Kind }>;
  };
  return {
    event: (place = 'event') => ofKind('event', place).name,
    property: (place = 'property') => ofKind('property', place).property,
    text: (place = 'any') => {
      const mention = mentionAt(place);
      return mention.kind === 'value' ? mention.text : mention.said;
    },
    value: (place = 'value') => ofKind('value', place),
    number: (place = 'number') => Number(ofKind('number', place).said),
    unit: (place = 'unit') => groups[place] as Unit,
    word: (place) => groups[place] ?? '',
  };
}

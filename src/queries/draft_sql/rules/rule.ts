import type { Draft, Unit } from '../draft.ts';
import type { GrammarWord, PropertyReference, Mention } from '../naming/mentions.ts';

/** What a rule found: the names and words that stand at the named places of its pattern. */
export interface Captures {
  event(group?: string): string;
  property(group?: string): PropertyReference;
  /** What stands there, whatever it is, as it is written; of a known value its own spelling. */
  text(group?: string): string;
  value(group?: string): Extract<Mention, { kind: 'value' }>;
  number(group?: string): number;
  unit(group?: string): Unit;
  /** A word of the rules; the empty text where it is left out. */
  word(group: string): string;
}

/** What some words mean. */
export interface Rule {
  readonly pattern: RegExp;
  /** Null where the words do not mean that after all. */
  readonly apply: (captures: Captures, draft: Draft) => Partial<Draft> | null;
}

const people = String.raw`(?:users?|persons?|people|visitors?|customers?)`;
const prepositions = 'in|on|over|for|during|within|from|of|at|to|through|throughout|across';
const units = 'minute|hour|day|week|month|quarter|year';

/**
 * A rule from its pattern, in which `{event}`, `{property}`, `{value}`, `{number}` and `{date}` stand for names and values,
 * `{any}` for any of them but events, `{anything}` for these too, `{unit}` for a unit of time, `{people}` for a word for people and `{in}` for a preposition that may be
 * left out. `{a:event}` gives the place a name.
 */
export const rule = (pattern: string, apply: Rule['apply']): Rule => {
  const says = pattern.replaceAll(/\{(?:(\w+):)?(\w+)\}/g, (_, group: string | undefined, kind: string) => {
    const name = group ?? kind;
    if (kind === 'people') return people;
    if (kind === 'in') return `(?:(?:${prepositions}) )?(?:the )?`;
    if (kind === 'unit') return `(?<${name}>${units})s?`;
    if (kind === 'any') return String.raw`<(?:property|value|number|date|text):(?<${name}>\d+)>`;
    if (kind === 'anything') return String.raw`<\w+:(?<${name}>\d+)>`;
    return String.raw`<${kind}:(?<${name}>\d+)>`;
  });
  return { pattern: new RegExp(`(?<![^ ])(?:${says})(?![^ ])`), apply };
};

/** Where several words have one meaning. */
export const rules = (meanings: Readonly<Record<string, Partial<Draft>>>): readonly Rule[] =>
  Object.entries(meanings).map(([pattern, meaning]) => rule(pattern, () => meaning));

/** A prompt's words as rules read them: `how many <event:0> {in} the last <number:1> days`. */
export const ruleText = (mentions: readonly (Mention | GrammarWord)[]): string =>
  mentions
    .map((mention, index) => (mention.kind === 'grammar' ? mention.word : `<${mention.kind}:${index}>`))
    .join(' ');

/** What was found by a match in the text of these mentions. */
export function capturesOf(match: RegExpExecArray, mentions: readonly (Mention | GrammarWord)[]): Captures {
  const groups = match.groups ?? {};
  const mentionIn = (group: string): Mention => {
    const mention = mentions[Number(groups[group])];
    if (mention === undefined || mention.kind === 'grammar') throw new Error(`Nothing stands at ${group}.`);
    return mention;
  };
  const ofKind = <Kind extends Mention['kind']>(
    kind: Kind,
    group: string,
  ): Extract<Mention, { kind: Kind }> => {
    const mention = mentionIn(group);
    if (mention.kind !== kind) throw new Error(`No ${kind} stands at ${group}.`);
    return mention as Extract<Mention, { kind: Kind }>;
  };
  return {
    event: (group = 'event') => ofKind('event', group).name,
    property: (group = 'property') => ofKind('property', group).property,
    text: (group = 'any') => {
      const mention = mentionIn(group);
      return mention.kind === 'value' ? mention.text : mention.said;
    },
    value: (group = 'value') => ofKind('value', group),
    number: (group = 'number') => Number(ofKind('number', group).said),
    unit: (group = 'unit') => groups[group] as Unit,
    word: (group) => groups[group] ?? '',
  };
}

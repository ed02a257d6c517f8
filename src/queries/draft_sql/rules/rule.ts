import type { Draft, Unit } from '../draft.ts';
import type { GrammarWord, PropertyReference, Mention } from '../naming/mentions.ts';

/** The captures of a rule: names and words in the named groups of its pattern. */
export interface Captures {
  event(group?: string): string;
  property(group?: string): PropertyReference;
  /** The text of the group, whatever it is, as written; for a known value, its own spelling. */
  text(group?: string): string;
  value(group?: string): Extract<Mention, { kind: 'value' }>;
  number(group?: string): number;
  unit(group?: string): Unit;
  /** A word of the rules; empty if it is missing. */
  word(group: string): string;
}

/** A rule: words and their meaning. */
export interface Rule {
  readonly pattern: RegExp;
  /** Returns null if the words do not have this meaning here. */
  readonly apply: (captures: Captures, draft: Draft) => Partial<Draft> | null;
}

const people = String.raw`(?:users?|persons?|people|visitors?|customers?)`;
const prepositions = 'in|on|over|for|during|within|from|of|at|to|through|throughout|across';
const units = 'minute|hour|day|week|month|quarter|year';

/**
 * Creates a rule from a pattern in which `{event}`, `{property}`, `{value}`, `{number}` and `{date}` match names and
 * values, `{any}` any of them except events, `{anything}` also events, `{unit}` a time unit, `{people}` a word for
 * people and `{in}` an optional preposition. `{a:event}` names the group `a`.
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

/** Creates rules without captures. */
export const rules = (meanings: Readonly<Record<string, Partial<Draft>>>): readonly Rule[] =>
  Object.entries(meanings).map(([pattern, meaning]) => rule(pattern, () => meaning));

/** The text that rules match: `how many <event:0> {in} the last <number:1> days`. */
export const ruleText = (mentions: readonly (Mention | GrammarWord)[]): string =>
  mentions
    .map((mention, index) => (mention.kind === 'grammar' ? mention.word : `<${mention.kind}:${index}>`))
    .join(' ');

/** The captures of a match in the text of these mentions. */
export function capturesOf(match: RegExpExecArray, mentions: readonly (Mention | GrammarWord)[]): Captures {
  const groups = match.groups ?? {};
  const mentionIn = (group: string): Mention => {
    const mention = mentions[Number(groups[group])];
    if (mention === undefined || mention.kind === 'grammar') throw new Error(`The group ${group} is empty.`);
    return mention;
  };
  const ofKind = <Kind extends Mention['kind']>(
    kind: Kind,
    group: string,
  ): Extract<Mention, { kind: Kind }> => {
    const mention = mentionIn(group);
    if (mention.kind !== kind) throw new Error(`The group ${group} is not a ${kind}.`);
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

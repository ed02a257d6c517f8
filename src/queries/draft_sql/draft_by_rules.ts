import { buildField, buildSelect } from '@exportd/dialect/ast_builders';
import { printQuery } from '@exportd/dialect/print';
import { QueryError } from '../query_errors.ts';
import type { KnownProperty, Vocabulary } from '../vocabulary.ts';

/** The error for a prompt that cannot be drafted. The message says why and what would help. */
export const unclear = (message: string): QueryError =>
  new QueryError('unclear', message, { attr: 'prompt' });

/** What drafts by rules can answer. */
const abilities =
  'A draft counts events or unique users, of all events or of one by name, as the top values of a property or by a property, ' +
  'per hour, day, week or month, over "today", "this week", "last month" or "the last 7 days". ' +
  'An example is "unique users of signup per week in the last 3 months".';

/**
 * Drafts a dialect query for a prompt by rules and the project's names.
 * @throws QueryError `unclear` if a word remains that no rule uses; the message says what can be drafted
 */
export function draftByRules(prompt: string, vocabulary: Vocabulary): string {
  const question = understand(wordsOf(prompt), createNames(vocabulary));
  const { counted, event, group, limit, unit } = question;
  if (counted === undefined && event === undefined && group === undefined)
    throw unclear(`The prompt does not say what to count. ${abilities}`);
  if (limit !== undefined && unit !== undefined)
    throw unclear(`Top values cannot be drafted per ${unit}. ${abilities}`);
  return printQuery(compose(question));
}

type Unit = 'hour' | 'day' | 'week' | 'month' | 'year';

/** What rows are grouped by, besides time. */
type Group = 'event' | KnownProperty;

/** What a prompt asks for, as far as it has been understood. */
interface Question {
  readonly counted?: 'events' | 'users';
  readonly event?: string;
  readonly group?: Group;
  /** The number of top groups. */
  readonly limit?: number;
  readonly unit?: Unit;
  /** Conditions on `timestamp`. */
  readonly period?: readonly string[];
}

/** What the first words of a text mean, and how many words that takes. */
interface Part {
  readonly length: number;
  readonly meaning: Question;
}

/** Words without meaning if no rule uses them. */
const fillers: ReadonlySet<string> = new Set(
  `a about all an and any are as at be been chart count counts did do does draft find for from get give graph had happened
    has have how i in is it its let made make many me much my number of on our over please plot query report result select
    show sql statistics stats table tell that the there these they this times to total totals us want was we were what which
    who will with you your`.split(/\s+/),
);

/** The words of a prompt without punctuation around them, in lower case. */
const wordsOf = (prompt: string): readonly string[] =>
  prompt
    .toLowerCase()
    .split(/[\s,;:?!"“”()]+/)
    .map((word) => (word.endsWith('.') ? word.slice(0, -1) : word))
    .filter((word) => word !== '');

/** Reads a prompt part by part. @throws QueryError `unclear` if words remain */
function understand(words: readonly string[], names: Names): Question {
  let question: Question = {};
  const left: string[] = [];
  for (let at = 0; at < words.length;) {
    const part = partOf(words.slice(at), names);
    const known: Readonly<Record<string, unknown>> = { ...question };
    // A second event, period or unit contradicts the first.
    if (
      part &&
      Object.entries(part.meaning).every(([name, value]) => [undefined, value].includes(known[name]))
    ) {
      question = { ...question, ...part.meaning };
      at += part.length;
    } else {
      const word = words[at] ?? '';
      if (!fillers.has(word)) left.push(word);
      at += 1;
    }
  }
  if (left.length === 0) return question;
  throw unclear(`Could not interpret ${left.map((word) => `"${word}"`).join(', ')}. ${abilities}`);
}

/** The unit of time and the number that a rule matched. */
interface Captured {
  readonly of: Unit;
  readonly count: string;
}

/** Words and their meaning. */
type Rule = readonly [RegExp, (captured: Captured) => Question];

const rule = (words: string, meaning: Rule[1]): Rule => [new RegExp(`^(?:${words})(?= |$)`), meaning];

const people = '(?:users?|persons?|people|visitors?|customers?)';
const within = '(?:(?:in|over|during|for|within|from|of) )?(?:the )?';
const unit = '(?<of>hour|day|week|month|year)s?';

/** Rules without names, more specific ones first. */
const rules: readonly Rule[] = [
  rule(`${within}(?:last|past) (?<count>[1-9]\\d{0,3}) ${unit}`, ({ of, count }) => ({
    period: [since(`now() - INTERVAL ${count} ${of.toUpperCase()}`)],
  })),
  rule(`${within}(?:last|previous) ${unit}`, ({ of }) => previous(of)),
  rule(`${within}(?:this|current) ${unit}`, ({ of }) => ({ period: [since(startOf(of))] })),
  rule('today', () => ({ period: [since(startOf('day'))] })),
  rule('yesterday', () => previous('day')),
  rule(`(?:by|per|each|every|for (?:each|every)) ${unit}`, ({ of }) => ({ unit: of })),
  rule('hourly', () => ({ unit: 'hour' })),
  rule('daily', () => ({ unit: 'day' })),
  rule('weekly', () => ({ unit: 'week' })),
  rule('monthly', () => ({ unit: 'month' })),
  rule(`(?:by )?(?:(?:unique|distinct|different|active) )*${people}`, () => ({ counted: 'users' })),
];

const since = (start: string): string => `timestamp >= ${start}`;

/** The start of the unit of a time; of the current one without `time`. */
const startOf = (of: Unit, time = 'now()'): string =>
  `toStartOf${of.slice(0, 1).toUpperCase()}${of.slice(1)}(${time})`;

/** The calendar unit before the current one. */
const previous = (of: Unit): Question => ({
  period: [since(startOf(of, `now() - INTERVAL 1 ${of.toUpperCase()}`)), `timestamp < ${startOf(of)}`],
});

/** What the first of these words mean; undefined if no rule begins with them. */
function partOf(words: readonly string[], names: Names): Part | undefined {
  const text = words.join(' ');
  const group: Finder<Group> = (rest) =>
    /^events?$/.test(rest[0] ?? '') ? { named: 'event', length: 1 } : names.property(rest);
  const named = [
    namedPart(words, /^(?:the )?top(?: ([1-9]\d{0,3}))? /, group, (found, count = '10') => ({
      group: found,
      limit: Number(count),
    })),
    namedPart(words, /^(?:by|per|for each) /, group, (found) => ({ group: found })),
    namedPart(words, /^(?:by )?/, names.event, (event) => ({ event })),
  ].filter((part) => part !== undefined);
  // `user signed up` is an event rather than users.
  const ofSeveralWords = named.find(({ nameLength }) => nameLength > 1);
  if (ofSeveralWords) return ofSeveralWords;
  for (const [pattern, meaning] of rules) {
    const match = pattern.exec(text);
    if (!match) continue;
    const { of, count = '' } = match.groups ?? {};
    return { length: match[0].split(' ').length, meaning: meaning({ of: of as Unit, count }) };
  }
  return (
    named[0] ?? (/^events?(?: |$)/.test(text) ? { length: 1, meaning: { counted: 'events' } } : undefined)
  );
}

/** What `lead` and a name after it mean; undefined if the words begin otherwise. */
function namedPart<Item>(
  words: readonly string[],
  lead: RegExp,
  find: Finder<Item>,
  meaning: (named: Item, captured: string | undefined) => Question,
): (Part & { readonly nameLength: number }) | undefined {
  const [leading, captured] = lead.exec(words.join(' ')) ?? [];
  if (leading === undefined) return undefined;
  const before = leading.split(' ').length - 1;
  const found = find(words.slice(before));
  return (
    found && {
      length: before + found.length,
      nameLength: found.length,
      meaning: meaning(found.named, captured),
    }
  );
}

interface Named<Item> {
  readonly named: Item;
  /** How many words name it. */
  readonly length: number;
}

/** Finds what the first words name. */
type Finder<Item> = (words: readonly string[]) => Named<Item> | undefined;

/** The names of a project. */
interface Names {
  readonly event: Finder<string>;
  readonly property: Finder<KnownProperty>;
}

const maxNameWords = 4;
/** Longer names are in no prompt. */
const maxNameLength = 100;

/** Properties by their common names. */
const commonNames: ReadonlyMap<string, string> = new Map([
  ['$geoip_country_name', 'country'],
  ['$pathname', 'page'],
]);

function createNames({ events, properties }: Vocabulary): Names {
  return {
    event: createFinder(events.map((name) => [name, [name]])),
    property: createFinder(properties.map((one) => [one, [one.key, commonNames.get(one.key) ?? one.key]])),
  };
}

/**
 * Finds the item that the first words name: as many words as possible that are a name, else a word that only one name
 * contains, such as `purchases` for `purchase_completed`. Of items with one name the first wins, the most frequent one.
 */
function createFinder<Item>(
  items: readonly (readonly [item: Item, names: readonly string[]])[],
): Finder<Item> {
  const byName = new Map<string, Item>();
  const byPart = new Map<string, Set<Item>>();
  for (const [item, names] of items)
    for (const name of names.filter(({ length }) => length <= maxNameLength)) {
      const parts = partsOf(name);
      const key = parts.join('');
      if (!byName.has(key)) byName.set(key, item);
      for (const part of parts) byPart.set(part, (byPart.get(part) ?? new Set()).add(item));
    }
  return (words) => {
    for (let length = Math.min(maxNameWords, words.length); length > 0; length -= 1) {
      const said = words.slice(0, length);
      const named = byName.get(said.flatMap(partsOf).join(''));
      if (named !== undefined && !said.every((word) => fillers.has(word))) return { named, length };
    }
    const [word = ''] = words;
    const containing = fillers.has(word) ? undefined : byPart.get(partsOf(word).join(' '));
    const [only] = containing ?? [];
    return only !== undefined && containing?.size === 1 ? { named: only, length: 1 } : undefined;
  };
}

/** The parts of a name without plural and past endings: `$signedUp`, `sign ups` and `signed_up` are `sign` and `up`. */
const partsOf = (name: string): readonly string[] =>
  name
    .replaceAll(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, ' ')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((part) => part !== '')
    .map((part) =>
      part
        .replace(/(?<=..)ies$/, 'y')
        .replace(/(?<=ss|x|ch|sh)es$/, '')
        .replace(/(?<=.[^sui])s$/, '')
        .replace(/(?<=...)ed$/, ''),
    );

/** The limit of a query over time, which must not be cut at the default of 100 rows. */
const maxPoints = 10_000;

/** Composes the query of a question. Names are values of the template and never become part of a text. */
function compose({ counted, event, group, limit, unit: of, period = [] }: Question) {
  const number = counted === 'users' ? 'users' : 'total';
  const conditions = [
    ...(event === undefined ? [] : ['event = {event}']),
    ...period,
    ...(limit === undefined ? [] : ['{key} is not null']),
  ];
  const keys = [...(of === undefined ? [] : [of]), ...(group === undefined ? [] : ['{key}'])];
  const order = [
    ...(of === undefined ? [] : [of]),
    ...(group === undefined ? [] : [`${number} desc`, '{key}']),
  ];
  const columns = [
    ...(of === undefined ? [] : [`${startOf(of, 'timestamp')} as ${of}`]),
    ...(group === undefined ? [] : ['{key}']),
    `${counted === 'users' ? 'uniq(person_id)' : 'count()'} as ${number}`,
  ];
  const rows = of === undefined ? limit : maxPoints;
  const template = [
    `select ${columns.join(', ')} from events`,
    conditions.length > 0 ? `where ${conditions.join(' and ')}` : '',
    keys.length > 0 ? `group by ${keys.join(', ')} order by ${order.join(', ')}` : '',
    rows === undefined ? '' : `limit ${rows}`,
  ].join(' ');
  const ofPersons = counted === 'users' && event === undefined;
  return buildSelect(template, {
    event: { value: event ?? '' },
    key: group === undefined ? { value: '' } : fieldOf(group, ofPersons),
  });
}

/** The field of a group. @param ofPersons takes a property of events and persons from the person */
function fieldOf(group: Group, ofPersons: boolean) {
  if (group === 'event') return buildField('event');
  const { key, owners } = group;
  return owners.includes('event') && !(ofPersons && owners.includes('person'))
    ? buildField('properties', key)
    : buildField('person', 'properties', key);
}

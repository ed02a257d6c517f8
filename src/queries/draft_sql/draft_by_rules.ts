import { buildField, buildSelect, type TemplateValues } from '../../dialect/ast_builders.ts';
import { printQuery } from '../../dialect/print.ts';
import { QueryError } from '../query_errors.ts';
import { mentionsOf, type Mention } from './prompt_names.ts';
import type { KnownProperty, Vocabulary } from './vocabulary.ts';

/** The input of a draft. */
export interface DraftInput {
  readonly prompt: string;
  /** The query that the prompt refers to. Rules ignore it. */
  readonly current_query: string | null;
  readonly vocabulary: Vocabulary;
  /** The current date in the project's zone, as `2026-11-21`. */
  readonly today: string;
}

/** The error for a prompt that cannot be drafted. The message says why and what would help. */
export const unclear = (message: string): QueryError =>
  new QueryError('unclear', message, { attr: 'prompt' });

/** What drafts by rules can answer. */
const abilities =
  'A draft counts events or unique users: of all events or of some by name, as the top values of a property or by up to two properties, ' +
  'per hour, day, week, month or year, over "today", "last week", "this month", "the last 7 days", "since 2026-11-01" or ' +
  '"between 2026-10-01 and 2026-10-31". An example is "unique users of signup per week in the last 3 months".';

/**
 * Drafts a dialect query for a prompt by rules and the project's names.
 * @throws QueryError `unclear` if a word remains that no rule uses; the message says what can be drafted
 */
export function draftByRules({ prompt, vocabulary }: Pick<DraftInput, 'prompt' | 'vocabulary'>): string {
  const question = understand(mentionsOf(prompt, vocabulary, isReserved));
  if (question.counted === null && question.events.length === 0 && question.groups.length === 0)
    throw unclear(`The prompt does not say what to count. ${abilities}`);
  return printQuery(composeQuery(question));
}

type Unit = 'minute' | 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year';

/** What rows are grouped by, besides time. */
type Group = 'event' | 'person' | KnownProperty;

/** What a prompt requests, as far as it has been understood. */
interface Question {
  readonly counted: 'events' | 'users' | null;
  readonly events: readonly string[];
  readonly groups: readonly Group[];
  readonly bucket: Unit | null;
  /** Conditions on `timestamp`. */
  readonly period: readonly string[] | null;
  /** Values of the period's conditions: dates as `2026-11-21`. */
  readonly dates: Readonly<Record<string, string>> | null;
  /** Only rows with a value. */
  readonly isTop: boolean | null;
  /** The number of groups; with a bucket, of each bucket. */
  readonly limit: number | null;
}

/** The words and names that a rule matched, by the names of its groups. */
interface Captures {
  event(): string;
  property(group?: string): KnownProperty;
  unit(): Unit;
  /** The number or date of a group, if the group took part. */
  text(group: string): string | undefined;
}

/** A rule: words and their meaning. `apply` returns null if the words do not have this meaning here. */
interface Rule {
  readonly template: string;
  readonly pattern: RegExp;
  readonly apply: (captures: Captures, question: Question) => Partial<Question> | null;
}

/**
 * Creates a rule from a template in which `{event}`, `{property}`, `{number}` and `{date}` match mentions, `{unit}` a
 * unit of time, `{people}` a word for people and `{in}` an optional preposition. `{a:date}` names the group `a`.
 */
function rule(template: string, apply: Rule['apply']): Rule {
  const pattern = template.replaceAll(
    /\{(?:(\w+):)?(\w+)\}/g,
    (_, group: string | undefined, kind: string) =>
      placeholders[kind] ?? String.raw`<${kind}:(?<${group ?? kind}>\d+)>`,
  );
  return { template, pattern: new RegExp(`(?<![^ ])(?:${pattern})(?![^ ])`), apply };
}

const placeholders: Readonly<Record<string, string>> = {
  people: '(?:users?|persons?|people|visitors?|customers?)',
  in: '(?:(?:in|over|for|during|within|from|of) )?(?:the )?',
  unit: '(?<unit>minute|hour|day|week|month|quarter|year)s?',
};

const most = 'most (?:common|frequent|popular|used|active)';
const top = `(?:the )?(?:(?:${most}|top)(?: {number})?|{count:number} ${most})`;
const by = '(?:by|per|for each|for every)(?: the)?';

/** The top groups of a kind, as many as the prompt says. */
const ranked = (captures: Captures, group: Group): Partial<Question> => {
  const limit = captures.text('number') ?? captures.text('count');
  return { groups: [group], isTop: true, ...(limit === undefined ? {} : { limit: rowLimit(Number(limit)) }) };
};

const maxRows = 10_000;

function rowLimit(limit: number): number {
  if (limit < 1 || limit > maxRows || !Number.isInteger(limit))
    throw unclear('The number of rows must be between 1 and 10,000.');
  return limit;
}

const bucketed =
  (bucket: Unit): Rule['apply'] =>
  () => ({ bucket });

const since = (start: string): string => `timestamp >= ${start}`;
const before = (end: string): string => `timestamp < ${end}`;

/** The start of the calendar unit that is `ago` units before the current one. */
const startOf = (unit: Unit, ago: number): string =>
  `toStartOf${unit.slice(0, 1).toUpperCase()}${unit.slice(1)}(now()${ago === 0 ? '' : ` - INTERVAL ${ago} ${unit.toUpperCase()}`})`;

const current = (unit: Unit): Partial<Question> => ({ period: [since(startOf(unit, 0))], dates: {} });
const previous = (unit: Unit): Partial<Question> => ({
  period: [since(startOf(unit, 1)), before(startOf(unit, 0))],
  dates: {},
});

/** From one date, inclusive, to the end of another. Null leaves an end open. */
function between(from: string | undefined, last: string | undefined): Partial<Question> {
  const next = last === undefined ? undefined : new Date(`${last}T00:00:00Z`);
  next?.setUTCDate(next.getUTCDate() + 1);
  return {
    period: [
      ...(from === undefined ? [] : [since('toDateTime({first})')]),
      ...(next === undefined ? [] : [before('toDateTime({end})')]),
    ],
    dates: {
      ...(from === undefined ? {} : { first: from }),
      ...(next === undefined ? {} : { end: next.toISOString().slice(0, 10) }),
    },
  };
}

/** All rules, more specific ones first. */
const rules: readonly Rule[] = [
  rule('{in}(?:last|past|previous) {number} {unit}', (captures) => {
    const count = Number(captures.text('number'));
    if (count < 1 || count >= 10_000 || !Number.isInteger(count)) return null;
    return { period: [since(`now() - INTERVAL ${count} ${captures.unit().toUpperCase()}`)], dates: {} };
  }),
  rule('{in}past {unit}', (captures) => ({
    period: [since(`now() - INTERVAL 1 ${captures.unit().toUpperCase()}`)],
    dates: {},
  })),
  rule('{in}(?:last|previous) {unit}', (captures) => previous(captures.unit())),
  rule('{in}(?:this|current) {unit}(?: so far)?', (captures) => current(captures.unit())),
  rule('{in}today', () => current('day')),
  rule('{in}yesterday', () => previous('day')),
  rule('(?:between |{in}){date} (?:and|to|until|through) {last:date}', (captures) =>
    between(captures.text('date'), captures.text('last')),
  ),
  rule('(?:since|from) {date}', (captures) => between(captures.text('date'), undefined)),
  rule('(?:on |in )?{date}', (captures) => between(captures.text('date'), captures.text('date'))),

  rule(`(?:${by}|each|every) {unit}`, (captures) => ({ bucket: captures.unit() })),
  rule('hourly', bucketed('hour')),
  rule('daily|over time', bucketed('day')),
  rule('weekly', bucketed('week')),
  rule('monthly', bucketed('month')),
  rule('yearly', bucketed('year')),

  rule(`${top} events?(?: names?)?|(?:which|what) events? (?:are |is )?(?:the )?${most}`, (captures) =>
    ranked(captures, 'event'),
  ),
  rule(`${top} {people}`, (captures) => ranked(captures, 'person')),
  rule(`${top} {property}`, (captures) => ranked(captures, captures.property())),
  rule(`${by} events?`, () => ({ groups: ['event'] })),
  // Top groups by a number are ranked by it, which rules cannot do: the name remains.
  rule(`${by} {property}(?: and (?:by )?{second:property})?`, (captures, { isTop }) =>
    isTop
      ? null
      : {
          groups: [
            captures.property(),
            ...(captures.text('second') === undefined ? [] : [captures.property('second')]),
          ],
        },
  ),

  rule('(?:by |number of )?(?:(?:unique|distinct|different|active) )*{people}(?: who)?', () => ({
    counted: 'users',
  })),
  rule('(?:(?:by|and|or) )?{event}', (captures, { events }) =>
    events.includes(captures.event()) ? {} : { events: [captures.event()] },
  ),
  rule('(?:all )?events?', () => ({ counted: 'events' })),
];

const wordsIn = (text: string): readonly string[] => text.match(/[a-z]+/g) ?? [];

/** Words without meaning if no rule uses them. */
const fillers: ReadonlySet<string> = new Set(
  wordsIn(`a about all an and any are as at be been can chart could count counts did do does draft find for from get
    give graph had happened has have how i in is it its let like made make many me much my need number numbers occurred of
    on our over please plot query report result select show sql statistics stats table tell that the there these this
    times to total totals us using want was we were what when where which who will with would you your`),
);

/** Words that change what a prompt means and that no rule knows. They are not parts of names either. */
const unknown: ReadonlySet<string> = new Set(
  wordsIn(`average avg mean median sum minimum min maximum max percent percentage percentile rate ratio conversion funnel
    retention session sessions duration first latest newest oldest recent new compare compared comparison versus vs than more
    less fewer least not no never without except excluding but if only limit then after before ago bounce growth trend
    order ordered sort sorted list rows until including whose`),
);

const ruleWords: ReadonlySet<string> = new Set(
  [...rules.map(({ template }) => template), ...Object.values(placeholders)].flatMap((template) =>
    wordsIn(template.replaceAll(/\{[^}]*\}|<\w+>/g, ' ')),
  ),
);

/** Whether a word belongs to the rules, whose plurals end in an optional `s`. */
const isReserved = (word: string): boolean =>
  [word, `${word}s`, word.replace(/s$/, '')].some(
    (form) => ruleWords.has(form) || fillers.has(form) || unknown.has(form),
  );

/** Replaces matched words, so that their neighbours do not become adjacent. */
const matched = '·';

/** Applies the rules to a prompt. @throws QueryError `unclear` if words remain */
function understand(mentions: readonly Mention[]): Question {
  let question: Question = {
    counted: null,
    events: [],
    groups: [],
    bucket: null,
    period: null,
    dates: null,
    isTop: null,
    limit: null,
  };
  let text = mentions
    .map(({ kind, said }, index) => (kind === 'reserved' ? said.toLowerCase() : `<${kind}:${index}>`))
    .join(' ');
  for (const { pattern, apply } of rules)
    for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
      const more = apply(capturesOf(match, mentions), question);
      const merged = more && merge(question, more);
      if (merged === null) break;
      question = merged;
      text = `${text.slice(0, match.index)}${matched}${text.slice(match.index + match[0].length)}`;
    }
  requireAllUnderstood(text, mentions);
  return question;
}

/** Merges two parts of a question; null if they contradict each other. */
function merge(question: Question, more: Partial<Question>): Question | null {
  const { events = [], groups = [], ...single } = more;
  for (const [name, value] of Object.entries(single)) {
    const own = question[name as keyof typeof single];
    if (own !== null && own !== value) return null;
  }
  return {
    ...question,
    ...single,
    events: [...question.events, ...events],
    groups: [...question.groups, ...groups],
  };
}

function capturesOf({ groups = {} }: RegExpExecArray, mentions: readonly Mention[]): Captures {
  const mentionIn = (group: string): Mention | undefined =>
    groups[group] === undefined ? undefined : mentions[Number(groups[group])];
  return {
    event: () => {
      const mention = mentionIn('event');
      if (mention?.kind !== 'event') throw new Error('The rule has no event.');
      return mention.name;
    },
    property: (group = 'property') => {
      const mention = mentionIn(group);
      if (mention?.kind !== 'property') throw new Error('The rule has no property.');
      return mention.property;
    },
    unit: () => groups.unit as Unit,
    text: (group) => mentionIn(group)?.said,
  };
}

function requireAllUnderstood(text: string, mentions: readonly Mention[]): void {
  const left = text.split(/[ ·]+/).flatMap((word): readonly Mention[] => {
    const [, index] = /^<\w+:(\d+)>$/.exec(word) ?? [];
    const mention = index === undefined ? undefined : mentions[Number(index)];
    if (mention !== undefined) return [mention];
    return word === '' || fillers.has(word) ? [] : [{ kind: 'reserved', said: word }];
  });
  if (left.length === 0) return;
  const candidates = left.flatMap((mention) =>
    mention.kind === 'text' ? mention.candidates.slice(0, 5) : [],
  );
  const meant =
    candidates.length === 0 ? '' : ` Did you mean ${candidates.map((name) => `"${name}"`).join(' or ')}?`;
  throw unclear(
    `Could not interpret ${left.map(({ said }) => `"${said}"`).join(', ')}.${meant} ${abilities}`,
  );
}

/** The limit of a query over time, which must not be cut at the default of 100 rows. */
const maxPoints = maxRows;

/** Composes the query of a question. Names and dates are values of the template and never become part of a text. */
function composeQuery({ counted, events, groups, bucket, period, dates, isTop, limit }: Question) {
  const ofUsers = counted === 'users' && !groups.includes('person');
  const number = ofUsers ? 'users' : 'total';
  // Several events are counted one by one.
  const allGroups: readonly Group[] =
    events.length > 1 && !groups.includes('event') ? ['event', ...groups] : groups;
  const keys = allGroups.map((_, index) => `{key${index}}`);
  const names = events.map((_, index) => `{event${index}}`).join(', ');
  const conditions = [
    ...(events.length === 0 ? [] : [events.length === 1 ? `event = ${names}` : `event in (${names})`]),
    ...(period ?? []),
    ...(isTop ? keys.map((key) => `${key} is not null`) : []),
  ];
  const time = bucket === null ? [] : [`${startOf(bucket, 0).replace('now()', 'timestamp')} as ${bucket}`];
  const grouped = [...(bucket === null ? [] : [bucket]), ...keys];
  const order = [
    ...(bucket === null ? [] : [bucket]),
    ...(keys.length > 0 ? [`${number} desc`, ...keys] : []),
  ];
  const ofEach = bucket !== null && keys.length > 0 ? limit : null;
  const rows = bucket === null ? limit : maxPoints;
  const template = [
    `select ${[...time, ...keys, `${ofUsers ? 'uniq(person_id)' : 'count()'} as ${number}`].join(', ')} from events`,
    conditions.length > 0 ? `where ${conditions.join(' and ')}` : '',
    grouped.length > 0 ? `group by ${grouped.join(', ')} order by ${order.join(', ')}` : '',
    ofEach === null ? '' : `limit ${ofEach} by ${bucket}`,
    rows === null ? '' : `limit ${rows}`,
  ].join(' ');
  const prefersPerson = ofUsers && events.length === 0;
  const values: TemplateValues = {
    ...Object.fromEntries(events.map((name, index) => [`event${index}`, { value: name }])),
    ...Object.fromEntries(allGroups.map((group, index) => [`key${index}`, fieldOf(group, prefersPerson)])),
    ...Object.fromEntries(Object.entries(dates ?? {}).map(([name, value]) => [name, { value }])),
  };
  return buildSelect(template, values);
}

/** The field of a group. @param prefersPerson takes a property of events and persons from the person */
function fieldOf(group: Group, prefersPerson: boolean) {
  if (group === 'event') return buildField('event');
  if (group === 'person') return buildField('person_id');
  const { key, owners } = group;
  return owners.includes('event') && !(prefersPerson && owners.includes('person'))
    ? buildField('properties', key)
    : buildField('person', 'properties', key);
}

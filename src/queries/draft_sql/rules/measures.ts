import type { PropertyMeasure, SessionMeasure } from '../draft.ts';
import { rule, rules, type Rule } from './rule.ts';

const statistics: Readonly<Record<string, PropertyMeasure>> = {
  '(?:average|avg|mean)': 'average',
  median: 'median',
  '(?:sum|total|total sum)': 'sum',
  '(?:maximum|max|highest|largest|longest|greatest)': 'maximum',
  '(?:minimum|min|lowest|smallest|shortest)': 'minimum',
  p90: 'p90',
  p95: 'p95',
  p99: 'p99',
  '(?:(?:number of |count of |how many )?(?:unique|distinct|different))': 'unique',
};
const one = '(?:an? |the |each |every )?';
const perPerson = `(?:per|by each|for each|for every|each|of each) (?:unique |active )?{people}`;

const ofSessions: Readonly<Record<string, SessionMeasure>> = {
  '(?:average|avg|mean)': 'session_duration',
  median: 'session_median',
  '(?:maximum|max|longest)': 'session_longest',
  '(?:minimum|min|shortest)': 'session_shortest',
};

/** What is computed. */
export const measureRules: readonly Rule[] = [
  ...Object.entries(ofSessions).flatMap(([words, kind]) =>
    rules({
      [`${words} session (?:duration|length|time)`]: { measures: [{ kind }], table: 'sessions' },
      [`${words} (?:duration|length|time) of (?:a |the )?sessions?`]: {
        measures: [{ kind }],
        table: 'sessions',
      },
    }),
  ),
  rule(`(?:average |avg |mean )?(?:number of |count of |how many )?sessions ${perPerson}`, () => ({
    measures: [{ kind: 'sessions_per_user' }],
  })),
  ...rules({
    'how long (?:are|is|do|does|was|were) (?:a |an |the )?(?:average )?sessions?(?: last)?(?: on average)?': {
      measures: [{ kind: 'session_duration' }],
      table: 'sessions',
    },
    'how often(?: did| do| does)?(?: {people})?': { measures: [{ kind: 'count' }] },
  }),
  ...rules({
    '(?:session )?(?:duration|length)(?: of sessions)?': {
      measures: [{ kind: 'session_duration' }],
      table: 'sessions',
    },
    'bounce rate': { measures: [{ kind: 'bounce_rate' }], table: 'sessions' },
  }),
  rule(`(?:average |avg |mean )?(?:number of |count of )?(?:events|{event}) ${perPerson}`, (captures) => ({
    measures: [{ kind: 'per_user' }],
    events: captures.word('event') === '' ? [] : [captures.event()],
  })),
  rule(
    `(?:average |avg |mean )?(?:number of |count of )?(?:events|{event}) (?:per|for each|each|in each) session`,
    (captures) => ({
      measures: [{ kind: 'per_session' }],
      events: captures.word('event') === '' ? [] : [captures.event()],
    }),
  ),
  ...Object.entries(statistics).flatMap(([words, kind]) => [
    rule(`${words}(?: value)?(?: of)?(?: the)? {event}(?: 's)? {property}`, (captures) => ({
      measures: [{ kind, property: captures.property() }],
      events: [captures.event()],
    })),
    rule(
      `${words}(?: value| values)?(?: of| for)?(?: the)? {property}(?: (?:of|per|for|in|on|from|by) ${one}{event})?`,
      (captures) => ({
        measures: [{ kind, property: captures.property() }],
        events: captures.word('event') === '' ? [] : [captures.event()],
      }),
    ),
  ]),
  ...rules({
    '(?:number of |count of |how many )?(?:unique |distinct |different )sessions': {
      measures: [{ kind: 'sessions' }],
    },
    '(?:number of |count of |how many )?(?:unique |distinct |different )(?:active )?{people}': {
      people: true,
      measures: [{ kind: 'users' }],
    },
  }),
];

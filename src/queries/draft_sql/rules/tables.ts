import { rule, rules, type Rule } from './rule.ts';

const newest = '(?:latest|newest|(?:most )?recent|last)';
const show = '(?:list|show(?: me)?|give(?: me)?|get|display|find)(?: me)?(?: all)?(?: of)?(?: the)?';

/** Requests for rows instead of numbers. */
export const rowRules: readonly Rule[] = [
  rule(`(?:the )?${newest} {number} (?:{event}|events)`, (captures) => ({
    rows: true,
    table: 'events',
    limit: captures.number(),
    events: captures.word('event') === '' ? [] : [captures.event()],
  })),
  rule(`(?:the )?{number} ${newest} (?:{event}|events)`, (captures) => ({
    rows: true,
    table: 'events',
    limit: captures.number(),
    events: captures.word('event') === '' ? [] : [captures.event()],
  })),
  rule(`(?:the )?${newest} (?:{event}|events)`, (captures) => ({
    rows: true,
    table: 'events',
    events: captures.word('event') === '' ? [] : [captures.event()],
  })),
  rule(`(?:the )?(?:${newest} {number}|{number2:number} ${newest}) {people}`, (captures) => ({
    rows: true,
    table: 'persons',
    limit: captures.number(captures.word('number') === '' ? 'number2' : 'number'),
  })),
  rule(`(?:list|show raw|raw) (?:all )?(?:the |of )*(?:{event}|events)`, (captures) => ({
    rows: true,
    table: 'events',
    events: captures.word('event') === '' ? [] : [captures.event()],
  })),
  ...rules({
    [`(?:the )?${newest} {people}`]: { rows: true, table: 'persons' },
    [`${show} {people}`]: { rows: true, people: true },
    '(?:which|what) {people}': { rows: true, people: true },
    '^who': { rows: true, people: true },
  }),
];

/** What remains: the table, events and limits. */
export const tableRules: readonly Rule[] = [
  ...rules({
    '(?:new|created) {people}(?: created)?': { table: 'persons' },
    '{people} (?:were )?created': { table: 'persons' },
    '(?:active )?{people}(?: (?:who|that|active|were active|was active))*': { people: true },
    active: { people: true },
    sessions: { table: 'sessions' },
  }),
  rule('(?:(?:and|or|vs|versus) )?(?:new )?{event}', (captures, draft) =>
    draft.events.includes(captures.event()) ? {} : { events: [captures.event()] },
  ),
  rule('(?:first|limit(?: to)?|limited to|only|top) {number}(?: rows| results)?', (captures) => ({
    limit: captures.number(),
  })),
  ...rules({
    '(?:all )?events': { table: 'events' },
    '(?:ordered|order|sorted|sort) by(?: (?:the )?(?:count|number|total|totals))?(?: desc(?:ending)?)?': {},
    '(?:compare|compared|comparison|vs|versus|against)(?: (?:to|with|of))?': {},
  }),
];

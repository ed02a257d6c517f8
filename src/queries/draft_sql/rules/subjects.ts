import { rule, rules, type Rule } from './rule.ts';

const newest = '(?:latest|newest|(?:most )?recent|last)';
const show = '(?:list|show(?: me)?|give(?: me)?|get|display|find)(?: me)?(?: all)?(?: of)?(?: the)?';

/** Rows themselves rather than numbers of them. */
export const rowRules: readonly Rule[] = [
  rule(`(?:the )?${newest} {number} (?:{event}|events)`, (found) => ({
    rows: true,
    subject: 'events',
    limit: found.number(),
    events: found.word('event') === '' ? [] : [found.event()],
  })),
  rule(`(?:the )?{number} ${newest} (?:{event}|events)`, (found) => ({
    rows: true,
    subject: 'events',
    limit: found.number(),
    events: found.word('event') === '' ? [] : [found.event()],
  })),
  rule(`(?:the )?${newest} (?:{event}|events)`, (found) => ({
    rows: true,
    subject: 'events',
    events: found.word('event') === '' ? [] : [found.event()],
  })),
  rule(`(?:the )?(?:${newest} {number}|{number2:number} ${newest}) {people}`, (found) => ({
    rows: true,
    subject: 'persons',
    limit: found.number(found.word('number') === '' ? 'number2' : 'number'),
  })),
  rule(`(?:list|show raw|raw) (?:all )?(?:the |of )*(?:{event}|events)`, (found) => ({
    rows: true,
    subject: 'events',
    events: found.word('event') === '' ? [] : [found.event()],
  })),
  ...rules({
    [`(?:the )?${newest} {people}`]: { rows: true, subject: 'persons' },
    [`${show} {people}`]: { rows: true, people: true },
    '(?:which|what) {people}': { rows: true, people: true },
    '^who': { rows: true, people: true },
  }),
];

/** What it is about, of what is left. */
export const subjectRules: readonly Rule[] = [
  ...rules({
    '(?:new|created) {people}(?: created)?': { subject: 'persons' },
    '{people} (?:were )?created': { subject: 'persons' },
    '(?:active )?{people}(?: (?:who|that|active|were active|was active))*': { people: true },
    active: { people: true },
    sessions: { subject: 'sessions' },
  }),
  rule('(?:(?:and|or|vs|versus) )?(?:new )?{event}', (found, draft) =>
    draft.events.includes(found.event()) ? {} : { events: [found.event()] },
  ),
  rule('(?:first|limit(?: to)?|limited to|only|top) {number}(?: rows| results)?', (found) => ({
    limit: found.number(),
  })),
  ...rules({
    '(?:all )?events': { subject: 'events' },
    '(?:ordered|order|sorted|sort) by(?: (?:the )?(?:count|number|total|totals))?(?: desc(?:ending)?)?': {},
    '(?:compare|compared|comparison|vs|versus|against)(?: (?:to|with|of))?': {},
  }),
];

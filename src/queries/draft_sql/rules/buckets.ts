import { rule, rules, type Rule } from './rule.ts';

const of =
  '(?:per|by|for each|for every|each|every|a|(?:grouped|broken down|split|summed|bucketed) (?:by|into))';

/** The time unit that results are grouped by. */
export const bucketRules: readonly Rule[] = [
  ...rules({
    [`${of}(?: the)? hours? of(?: the)? day`]: { bucket: 'hour_of_day' },
    'at (?:what|which) (?:time|hours?)(?: of(?: the)? day)?': { bucket: 'hour_of_day' },
    [`${of}(?: the)? (?:days? of(?: the)? week|weekdays?)`]: { bucket: 'day_of_week' },
    '(?:on )?(?:what|which) (?:days? of(?: the)? week|weekdays?)': { bucket: 'day_of_week' },
    '(?:daily active users|dau)': { bucket: 'day', people: true },
    '(?:weekly active users|wau)': { bucket: 'week', people: true },
    '(?:monthly active users|mau)': { bucket: 'month', people: true },
  }),
  rule(`${of} {unit}`, (captures) => ({ bucket: captures.unit() })),
  rule('{unit} by \\w+', (captures) => ({ bucket: captures.unit() })),
  ...rules({
    hourly: { bucket: 'hour' },
    daily: { bucket: 'day' },
    weekly: { bucket: 'week' },
    monthly: { bucket: 'month' },
    quarterly: { bucket: 'quarter' },
    yearly: { bucket: 'year' },
    '(?:over time|trends?(?: of)?|growth(?: of| in)?)': { bucket: 'day' },
  }),
];

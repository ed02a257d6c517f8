import type { Period, Unit } from '../draft.ts';
import { rule, rules, type Rule } from './rule.ts';

const calendar = (unit: Unit, ago: number): Period => ({ kind: 'calendar', unit, ago });
const days = (from: string | null, before: string | null): Period => ({ kind: 'days', from, before });

/** The next day. */
const nextDay = (day: string): string => shifted(day, (date) => date.setUTCDate(date.getUTCDate() + 1));
const shifted = (day: string, shift: (date: Date) => number): string => {
  const date = new Date(`${day}T00:00:00Z`);
  shift(date);
  return date.toISOString().slice(0, 10);
};

const monthNames =
  'january february march april may june july august september october november december'.split(' ');

/** A month, of the given year or else its latest occurrence as of today. */
function monthPeriod(name: string, year: number | null, today: string): Period {
  const number = String(monthNames.indexOf(name) + 1).padStart(2, '0');
  const thisYear = Number(today.slice(0, 4));
  const of = year ?? (`${thisYear}-${number}` <= today.slice(0, 7) ? thisYear : thisYear - 1);
  const from = `${of}-${number}-01`;
  return days(
    from,
    shifted(from, (date) => date.setUTCMonth(date.getUTCMonth() + 1)),
  );
}

const versus = '(?:vs|versus|and|or|against|to|with|than|(?:as )?compared (?:to|with))';
const isYear = (number: number): boolean => Number.isInteger(number) && number >= 1970 && number <= 2100;

/** Two periods to compare. */
const comparisonRules: readonly Rule[] = [
  rule(
    `{in}(?:between )?(?:this|current) {unit} ${versus} (?:the )?(?:last|previous)(?: \\w+)?`,
    (captures) => ({
      compared: [calendar(captures.unit(), 0), calendar(captures.unit(), 1)],
    }),
  ),
  rule(
    `{in}(?:between )?(?:the )?(?:last|previous) {unit} ${versus} (?:this|current)(?: \\w+)?`,
    (captures) => ({
      compared: [calendar(captures.unit(), 0), calendar(captures.unit(), 1)],
    }),
  ),
  rule(`{unit} over {same:unit}`, (captures) =>
    captures.unit() === captures.unit('same')
      ? { compared: [calendar(captures.unit(), 0), calendar(captures.unit(), 1)] }
      : null,
  ),
  rule(
    '(?:vs|versus|against|(?:as )?compared? (?:to|with)) (?:the )?(?:last|previous) {unit}',
    (captures, { compared }) =>
      compared === null ? { compared: [calendar(captures.unit(), 0), calendar(captures.unit(), 1)] } : null,
  ),
  ...rules({
    [`{in}(?:between )?(?:today ${versus} yesterday|yesterday ${versus} today)`]: {
      compared: [calendar('day', 0), calendar('day', 1)],
    },
  }),
];

/** Periods. @param today the current date, for months without a year */
export const periodRules = (today: string): readonly Rule[] => [
  ...comparisonRules,
  rule('{in}(?:the )?(?:last|past|previous|recent) {number} {unit}', (captures) =>
    captures.number() >= 1 && captures.number() < 10_000 && Number.isInteger(captures.number())
      ? { period: { kind: 'last', count: captures.number(), unit: captures.unit() } }
      : null,
  ),
  rule(
    '(?:(?:in|over|for|during|within|from|of) )?(?:the past|past|(?:in|over|during|within) the last) {unit}',
    (captures) => ({
      period: { kind: 'last', count: 1, unit: captures.unit() },
    }),
  ),
  rule('{in}(?:last|previous) {unit}', (captures) => ({ period: calendar(captures.unit(), 1) })),
  rule('{in}(?:this|current) {unit}(?: so far)?', (captures) => ({ period: calendar(captures.unit(), 0) })),
  rule('{unit} to date', (captures) => ({ period: calendar(captures.unit(), 0) })),
  rule('{in}(?:between |from )?{date} (?:and|to|until|through) {to:date}', (captures) => ({
    period: days(captures.text('date'), nextDay(captures.text('to'))),
  })),
  rule('(?:since|from|starting|after) {date}', (captures) => ({ period: days(captures.text('date'), null) })),
  rule('(?:before|until) {date}', (captures) => ({ period: days(null, captures.text('date')) })),
  rule('(?:(?:on|in|for|at) )?{date}', (captures) => ({
    period: days(captures.text('date'), nextDay(captures.text('date'))),
  })),
  rule(`(?:in|during|for|of) (?<month>${monthNames.join('|')})(?: {number})?`, (captures) => {
    const year = captures.word('number') === '' ? null : captures.number();
    if (year !== null && !isYear(year)) return null;
    return { period: monthPeriod(captures.word('month'), year, today) };
  }),
  rule('(?:in|during|for|of) {number}', (captures) =>
    isYear(captures.number())
      ? { period: days(`${captures.number()}-01-01`, `${captures.number() + 1}-01-01`) }
      : null,
  ),
  rule('since yesterday', () => ({ period: { kind: 'calendar', unit: 'day', ago: 1 } })),
  ...rules({
    '{in}today': { period: calendar('day', 0) },
    '{in}yesterday': { period: calendar('day', 1) },
    '(?:{in}all(?: the)? time|ever|in total|overall)': { period: { kind: 'always' } },
  }),
];

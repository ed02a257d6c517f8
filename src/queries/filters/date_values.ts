import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, buildTimeLiteral } from '../../dialect/ast_builders.ts';
import { DateTime } from 'luxon';
import { microsecondDigits, parseAbsoluteDate } from '../dates/absolute_date.ts';
import { parseRelativeDate, type RelativeDate, type RelativeUnit } from '../dates/relative_date.ts';

/** A date of a filter as expressions of the dialect, so that zone and time are those of the query. */
export interface DateValue {
  /** The point in time itself. */
  readonly moment: Expression;
  /** The start of its day, or of its shorter unit. */
  readonly start: Expression;
  /** The start of the next one. */
  readonly next: Expression;
  /** Whether it is a whole day, so that "after" means after its end. */
  readonly isDay: boolean;
}

/** Parses the date in a filter's value; null if it is not one. */
export function dateValueOf(text: string): DateValue | null {
  const absolute = parseAbsoluteDate(text);
  if (absolute === null) {
    const relative = parseRelativeDate(text);
    return relative === null ? null : relativeValue(relative);
  }
  const { local, hasOffset, isDay } = absolute;
  const literalOf = (time: number, digits = ''): Expression => {
    const text = DateTime.fromMillis(time, { zone: 'utc' }).toFormat("yyyy-MM-dd'T'HH:mm:ss.SSS");
    return buildTimeLiteral(`${text}${digits}${hasOffset ? 'Z' : ''}`);
  };
  const unit = isDay ? 86_400_000 : 1000;
  const start = Math.floor(local / unit) * unit;
  return {
    moment: literalOf(local, microsecondDigits(absolute)),
    start: literalOf(start),
    next: literalOf(start + unit),
    isDay,
  };
}

/** The dialect's functions that subtract a unit and truncate to it. */
const functions: Readonly<Record<RelativeUnit, { readonly earlier: string; readonly start: string }>> = {
  second: { earlier: 'subtractSeconds', start: 'toStartOfSecond' },
  minute: { earlier: 'subtractMinutes', start: 'toStartOfMinute' },
  hour: { earlier: 'subtractHours', start: 'toStartOfHour' },
  day: { earlier: 'subtractDays', start: 'toStartOfDay' },
  week: { earlier: 'subtractWeeks', start: 'toStartOfWeek' },
  month: { earlier: 'subtractMonths', start: 'toStartOfMonth' },
  quarter: { earlier: 'subtractWeeks', start: 'toStartOfQuarter' },
  year: { earlier: 'subtractYears', start: 'toStartOfYear' },
};
const later: Readonly<Record<RelativeUnit, string>> = {
  second: 'addSeconds',
  minute: 'addMinutes',
  hour: 'addHours',
  day: 'addDays',
  week: 'addWeeks',
  month: 'addMonths',
  quarter: 'addQuarters',
  year: 'addYears',
};
const shorterThanDay: ReadonlySet<RelativeUnit> = new Set(['second', 'minute', 'hour']);

function relativeValue({ amount, unit, position }: RelativeDate): DateValue {
  const count = unit === 'quarter' ? 13 * amount : amount;
  const ago = buildExpression(`${functions[unit].earlier}(now(), {count})`, { count: { value: count } });
  const cutTo = (to: RelativeUnit, moment: Expression): Expression =>
    buildExpression(`toDateTime(${functions[to].start}({moment}))`, { moment });
  const after = (to: RelativeUnit, moment: Expression): Expression =>
    buildExpression(`${later[to]}({moment}, 1)`, { moment });
  const first = cutTo(unit, ago);
  const moment = position === null ? ago : position === 'start' ? first : after(unit, first);
  const precision = shorterThanDay.has(unit) ? unit : 'day';
  // The end of a unit is the start of the next one; its day is the day before.
  const start = cutTo(
    precision,
    position === 'end' ? buildExpression('subtractSeconds({moment}, 1)', { moment }) : moment,
  );
  return { moment, start, next: after(precision, start), isDay: false };
}

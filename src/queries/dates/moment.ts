import { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import { buildTimeLiteral } from '../../dialect/ast_builders.ts';
import { microsecondDigits, parseAbsoluteDate, parseRelativeDate } from '../../filters/dates.ts';
import type { FiltersOverride, QueryProject } from '../query_kind.ts';
import { type DateRange, invalidDate } from './date_range.ts';
import { momentBefore, momentOfDate } from './local_time.ts';

/**
 * The point in time of a date, without rounding. The end of a day is the start of the next one.
 * @throws QueryError for an invalid date
 */
function momentIn(
  text: string,
  { project, now }: { readonly project: QueryProject; readonly now: Date },
  attr: string,
): DateTime {
  const present = DateTime.fromJSDate(now, { zone: project.timezone });
  const absolute = parseAbsoluteDate(text);
  if (absolute !== null) return momentOfDate(absolute, present.zone, 'first');
  const relative = parseRelativeDate(text);
  const moment = relative && momentBefore(present, relative, project);
  if (moment?.isValid === true && moment.year >= 1000)
    return relative?.position === 'end' ? moment.plus(1) : moment;
  throw invalidDate(attr);
}

/** A point in time as a literal of the dialect. @param digits the microseconds, as three digits or none */
export const momentLiteral = (moment: DateTime, digits = ''): Expression =>
  buildTimeLiteral(`${moment.toUTC().toFormat("yyyy-MM-dd'T'HH:mm:ss.SSS")}${digits}Z`);

/**
 * The point in time of a date as a literal of the dialect, to the microsecond.
 * @throws QueryError for an invalid date
 */
export function momentLiteralIn(...[text, context, attr]: Parameters<typeof momentIn>): Expression {
  const absolute = parseAbsoluteDate(text);
  return momentLiteral(momentIn(text, context, attr), absolute === null ? '' : microsecondDigits(absolute));
}

/**
 * The dashboard's date range if it has one, else the query's own.
 * @throws QueryError with the path of an invalid date
 */
export function withOverriddenDates<Own extends DateRange | null | undefined>(
  own: Own,
  { date_from, date_to }: Pick<FiltersOverride, 'date_from' | 'date_to'>,
): Own | DateRange {
  if (!date_from && !date_to) return own;
  return {
    date_from: date_from ? checkedDate(date_from, 'date_from') : null,
    date_to: date_to ? checkedDate(date_to, 'date_to') : null,
  };
}

/** Validates a date of a dashboard's filters and returns it unchanged. @throws QueryError for an invalid date */
export function checkedDate(text: string, field: 'date_from' | 'date_to'): string {
  const isAll = text === 'all' && field === 'date_from';
  if (isAll || parseAbsoluteDate(text) !== null || parseRelativeDate(text) !== null) return text;
  throw invalidDate(`filters_override__${field}`);
}

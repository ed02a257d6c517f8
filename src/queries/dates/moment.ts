import { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import { buildTimeLiteral } from '../../dialect/ast_builders.ts';
import type { QueryProject } from '../query_kind.ts';
import { microsecondDigits, parseAbsoluteDate, parseRelativeDate } from '../../filters/dates.ts';
import { momentOfDate } from './local_time.ts';
import { invalidDate } from './invalid_date.ts';
import { momentBefore } from './relative_date.ts';

/**
 * The point in time of a date, without rounding. The end of a day is the start of the next one.
 * @throws QueryError for an invalid date
 */
export function momentIn(
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

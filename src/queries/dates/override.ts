import type { FiltersOverride } from '../query_kind.ts';
import { parseAbsoluteDate } from './absolute_date.ts';
import { notADate } from './not_a_date.ts';
import { parseRelativeDate } from './relative_date.ts';
import type { DateRange } from './schema.ts';

/** A dashboard's range of dates in the place of a query's own, if it has one. @throws QueryInvalid that names the date */
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

/** A date of a dashboard's filters as it is. @throws QueryInvalid for one that cannot be read */
export function checkedDate(text: string, member: 'date_from' | 'date_to'): string {
  const isAll = text === 'all' && member === 'date_from';
  if (isAll || parseAbsoluteDate(text) !== null || parseRelativeDate(text) !== null) return text;
  throw notADate(`filters_override__${member}`);
}

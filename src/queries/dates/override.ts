import type { FiltersOverride } from '../query_kind.ts';
import { parseAbsoluteDate } from './absolute_date.ts';
import { invalidDate } from './invalid_date.ts';
import { parseRelativeDate } from './relative_date.ts';
import type { DateRange } from './schema.ts';

/** A dashboard's range of dates in the place of a query's own, if it has one. @throws QueryError that names the date */
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

/** A date of a dashboard's filters as it is. @throws QueryError for one that cannot be read */
export function checkedDate(text: string, field: 'date_from' | 'date_to'): string {
  const isAll = text === 'all' && field === 'date_from';
  if (isAll || parseAbsoluteDate(text) !== null || parseRelativeDate(text) !== null) return text;
  throw invalidDate(`filters_override__${field}`);
}

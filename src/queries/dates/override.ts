import type { FiltersOverride } from '../query_kind.ts';
import { parseAbsoluteDate, parseRelativeDate } from '../../filters/dates.ts';
import { invalidDate } from './invalid_date.ts';
import type { DateRange } from './schema.ts';

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

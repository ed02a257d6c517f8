import { DateTime } from 'luxon';
import { parseAbsoluteDate } from '../dates/absolute_date.ts';
import { parseRelativeDate } from '../dates/relative_date.ts';
import { withOverride } from '../filters/override.ts';
import { QueryInvalid } from '../query_errors.ts';
import type { FiltersOverride } from '../query_kind.ts';
import type { EventsQuery } from './schema.ts';

/** A query with the dates of a dashboard instead of its own, and its property filters beside them. @throws QueryInvalid */
export const overrideEvents = (
  query: EventsQuery,
  { date_from, date_to, properties }: FiltersOverride,
): EventsQuery => ({
  ...query,
  ...(date_from ? { after: checked(date_from, 'filters_override__date_from') } : {}),
  ...(date_to ? { before: dayAfter(checked(date_to, 'filters_override__date_to')) } : {}),
  properties: withOverride(query.properties, properties),
});

function checked(text: string, attr: string): string {
  if (text === 'all' && attr.endsWith('date_from')) return text;
  if (parseAbsoluteDate(text) !== null || parseRelativeDate(text) !== null) return text;
  throw new QueryInvalid('invalid_input', 'This is not a date: write for example 2026-11-21 or -7d.', {
    attr,
  });
}

/** A day at the end of a range is part of it, and `before` is not. */
function dayAfter(text: string): string {
  const day = parseAbsoluteDate(text);
  if (day?.isDay !== true) return text;
  return DateTime.fromMillis(day.local, { zone: 'utc' }).plus({ days: 1 }).toFormat('yyyy-MM-dd');
}

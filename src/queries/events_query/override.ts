import { DateTime } from 'luxon';
import { parseAbsoluteDate } from '../dates/absolute_date.ts';
import { checkedDate } from '../dates/override.ts';
import { withOverride } from '../filters/override.ts';
import type { FiltersOverride } from '../query_kind.ts';
import type { EventsQuery } from './schema.ts';

/** A query with the dates of a dashboard instead of its own, and its property filters beside them. @throws QueryError */
export const overrideEvents = (
  query: EventsQuery,
  { date_from, date_to, properties }: FiltersOverride,
): EventsQuery => ({
  ...query,
  ...(date_from ? { after: checkedDate(date_from, 'date_from') } : {}),
  ...(date_to ? { before: dayAfter(checkedDate(date_to, 'date_to')) } : {}),
  properties: withOverride(query.properties, properties),
});

/** A day at the end of a range is part of it, and `before` is not. */
function dayAfter(text: string): string {
  const day = parseAbsoluteDate(text);
  if (day?.isDay !== true) return text;
  return DateTime.fromMillis(day.local, { zone: 'utc' }).plus({ days: 1 }).toFormat('yyyy-MM-dd');
}

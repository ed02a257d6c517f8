import { DateTime } from 'luxon';
import { parseAbsoluteDate } from '../../filters/dates.ts';
import { checkedDate } from '../dates/override.ts';
import { withOverride } from '../filters.ts';
import type { FiltersOverride } from '../query_kind.ts';
import type { EventsQuery } from './schema.ts';

/**
 * A query with a dashboard's filters: its dates replace those of the query, its property filters are added.
 * @throws QueryError
 */
export const overrideEvents = (
  query: EventsQuery,
  { date_from, date_to, properties }: FiltersOverride,
): EventsQuery => ({
  ...query,
  ...(date_from ? { after: checkedDate(date_from, 'date_from') } : {}),
  ...(date_to ? { before: dayAfter(checkedDate(date_to, 'date_to')) } : {}),
  properties: withOverride(query.properties, properties),
});

/** `before` is exclusive, but the last day of a dashboard's range is included. */
function dayAfter(text: string): string {
  const day = parseAbsoluteDate(text);
  if (day?.isDay !== true) return text;
  return DateTime.fromMillis(day.local, { zone: 'utc' }).plus({ days: 1 }).toFormat('yyyy-MM-dd');
}

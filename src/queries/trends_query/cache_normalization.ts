import { presentationNames } from './presentation.ts';
import { displayFormOf, type TrendsQuery } from './schema.ts';

/** Removes fields that are null or empty objects. */
function withoutEmpty(value: object): Record<string, unknown> | undefined {
  const fields = Object.entries<unknown>({ ...value }).filter(
    ([, inner]) =>
      inner !== null &&
      inner !== undefined &&
      !(typeof inner === 'object' && Object.keys(inner).length === 0),
  );
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}

/**
 * The parts of a query that its result depends on. Displays with the same numbers are equal; a world map has more
 * breakdown values.
 */
export function normalizeForCache(query: TrendsQuery): Record<string, unknown> {
  const { series, breakdownFilter, compareFilter, trendsFilter, dateRange } = query;
  const { display, ...filter } = trendsFilter ?? {};
  const form = displayFormOf(display);
  const remaining = Object.fromEntries(
    Object.entries(filter).filter(([name]) => !presentationNames.has(name)),
  );
  return {
    series: series.map((one) => withoutEmpty({ ...one, response: null, version: null })),
    interval: query.interval,
    dateRange: withoutEmpty(dateRange ?? {}),
    properties: query.properties,
    filterTestAccounts: query.filterTestAccounts,
    samplingFactor: query.samplingFactor,
    breakdownFilter: withoutEmpty(breakdownFilter ?? {}),
    compareFilter: withoutEmpty(compareFilter ?? {}),
    trendsFilter: withoutEmpty({
      ...remaining,
      display: form === 'timeSeries' ? null : form,
      isMap: display === 'WorldMap' ? true : null,
    }),
  };
}

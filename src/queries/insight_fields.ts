import { z } from 'zod';
import { withOverriddenDates } from './dates/override.ts';
import { dateRangeSchema, type DateRange } from './dates/schema.ts';
import { withOverride } from './filters.ts';
import { propertyFiltersSchema, type PropertyFilters } from '../filters/schema.ts';
import type { FiltersOverride } from './query_kind.ts';
import { samplingFactorSchema } from './sampling.ts';

/** The fields of an insight that select its events and intervals. */
export const insightFields = {
  interval: z
    .enum(['minute', 'hour', 'day', 'week', 'month'])
    .nullish()
    .transform((interval) => interval ?? 'day'),
  dateRange: dateRangeSchema.nullish(),
  properties: propertyFiltersSchema.nullish().transform((filters): PropertyFilters | null => filters ?? null),
  filterTestAccounts: z
    .boolean()
    .nullish()
    .transform((filtered) => filtered ?? false),
  samplingFactor: samplingFactorSchema,
  /** Affects presentation only. */
  dataColorTheme: z.number().nullish(),
};

/**
 * An insight with a dashboard's filters: the dates replace its own, the property filters are added to its own.
 * @throws QueryError with the path of the invalid filter
 */
export const overriddenInsight = <
  Query extends {
    readonly dateRange?: DateRange | null | undefined;
    readonly properties: PropertyFilters | null;
  },
>(
  query: Query,
  filters: FiltersOverride,
) => ({
  ...query,
  dateRange: withOverriddenDates(query.dateRange, filters),
  properties: withOverride(query.properties, filters.properties),
});

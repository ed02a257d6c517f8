import { z } from 'zod';
import { withOverriddenDates } from './dates/override.ts';
import { dateRangeSchema, type DateRange } from './dates/schema.ts';
import { withOverride } from './filters/override.ts';
import { propertyFiltersSchema, type PropertyFilters } from './filters/schema.ts';
import type { FiltersOverride } from './query_kind.ts';
import { samplingFactorSchema } from './sampling.ts';

/** Members that say over which events and intervals an insight is computed. */
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
  /** Only changes how an answer looks. */
  dataColorTheme: z.number().nullish(),
};

/**
 * An insight with a dashboard's dates in the place of its own and the dashboard's property filters beside its own.
 * @throws QueryError that names the member of the filters
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

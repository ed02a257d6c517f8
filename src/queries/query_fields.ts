import * as z from 'zod';
import { type PropertyFilters, propertyFiltersSchema } from '../filters/schema.ts';
import { type DateRange, dateRangeSchema, withOverriddenDates } from './dates.ts';
import type { FiltersOverride } from './query_kind.ts';
import { withOverride } from './property_filters.ts';

/** Fields that every query kind accepts; no result depends on them. */
export const ignoredFields = {
  response: z.unknown().optional(),
  name: z.string().nullish(),
  /** Whether to return what the query cost, as `explain`. Its statements then run a second time. */
  explain: z.boolean().nullish(),
  modifiers: z.looseObject({}).nullish(),
  tags: z.looseObject({}).nullish(),
  version: z.number().nullish(),
};

/** Their names, which the cache key leaves out. */
export const ignoredFieldNames: ReadonlySet<string> = new Set(Object.keys(ignoredFields));

const invalidFactor = 'The sampling factor must be greater than 0 and at most 1, such as 0.1.';

/** The share of distinct ids whose events an insight reads; null for all. */
const samplingFactorSchema = z
  .number()
  .gt(0, invalidFactor)
  .max(1, invalidFactor)
  .nullish()
  .transform((factor) => (factor === 1 ? null : (factor ?? null)));

/** Extrapolates a count over a sample to all events. */
export const countOfAll = (count: number, factor: number | null): number =>
  factor === null ? count : Math.round(count / factor);

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

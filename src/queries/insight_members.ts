import { z } from 'zod';
import { dateRangeSchema } from './dates/schema.ts';
import { propertyFiltersSchema, type PropertyFilters } from './filters/schema.ts';

/** Members that say over which events and intervals an insight is computed. */
export const insightMembers = {
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
  /** Only changes how an answer looks. */
  dataColorTheme: z.number().nullish(),
};

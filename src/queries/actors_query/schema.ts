import { z } from 'zod';
import { propertyFiltersSchema, textValue, type PropertyFilters } from '../../filters/schema.ts';
import { ignoredFields } from '../ignored_fields.ts';
import { actorsSourceSchema } from './sources/schema.ts';

const actorFilters = propertyFiltersSchema
  .nullish()
  .transform((filters): PropertyFilters | null => filters ?? null);

/** A query of the kind ActorsQuery. */
export const actorsQuerySchema = z.strictObject({
  kind: z.literal('ActorsQuery'),
  /** The actors behind a result; by default all persons. */
  source: actorsSourceSchema.nullish(),
  /** Expressions of the dialect, or `person`, `person_display_name`, `person.$delete`; `group` for groups. */
  select: z.array(z.string()).max(100).nullish(),
  search: textValue.nullish(),
  properties: actorFilters,
  fixedProperties: actorFilters,
  orderBy: z.array(z.string()).max(100).nullish(),
  limit: z.number().int().min(1).nullish(),
  offset: z.number().int().min(0).nullish(),
  ...ignoredFields,
});
export type ActorsQuery = z.infer<typeof actorsQuerySchema>;

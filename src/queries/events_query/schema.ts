import { z } from 'zod';
import { insightActorsSchema } from '../actors_query/sources/schema.ts';
import { propertyFiltersSchema } from '../../filters/schema.ts';
import { ignoredFields } from '../ignored_fields.ts';

const filters = propertyFiltersSchema.nullish();
const date = z
  .string()
  .transform((text) => (text === '' ? null : text))
  .nullish();
const expressions = z.array(z.string()).max(100);

/** A query of the kind EventsQuery. */
export const eventsQuerySchema = z.strictObject({
  kind: z.literal('EventsQuery'),
  /** Expressions of the dialect, or `*`, `person`, `person_display_name`; `*` by default if the list is empty. */
  select: expressions.transform((select) => (select.length === 0 ? ['*'] : select)),
  /** Conditions; all must match. */
  where: expressions.nullish(),
  properties: filters,
  fixedProperties: filters,
  filterTestAccounts: z.boolean().nullish(),
  /** The event name. */
  event: z.string().nullish(),
  actionId: z.number().nullish(),
  personId: z.string().nullish(),
  /**
   * Exclusive time bounds, absolute or relative; `all` for no lower bound. By default the last day, or everything if
   * `source` is set.
   */
  after: date,
  before: date,
  orderBy: expressions.nullish(),
  limit: z.number().int().min(1).nullish(),
  offset: z.number().int().min(0).nullish(),
  /** Selects the events behind a point of an insight. */
  source: insightActorsSchema.nullish(),
  ...ignoredFields,
});
export type EventsQuery = z.infer<typeof eventsQuerySchema>;

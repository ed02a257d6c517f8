import { z } from 'zod';
import { propertyFiltersSchema } from '../filters/schema.ts';

const sharedFields = {
  name: z.string().nullish(),
  custom_name: z.string().nullish(),
  properties: propertyFiltersSchema.nullish(),
  fixedProperties: propertyFiltersSchema.nullish(),
  response: z.unknown().optional(),
  version: z.number().nullish(),
};

/** Members of a series of events without those of its kind of query, such as `math` of trends. */
export const eventsNodeFields = {
  kind: z.literal('EventsNode'),
  /** The event's name; null for all events. */
  event: z.string().nullish(),
  ...sharedFields,
};

/** The same of an action: read, so that it can be refused by name. */
export const actionsNodeFields = { kind: z.literal('ActionsNode'), id: z.number(), ...sharedFields };

/** The same of rows of a warehouse table: read, so that it can be refused by name. */
export const dataWarehouseNodeFields = {
  kind: z.literal('DataWarehouseNode'),
  id: z.string(),
  table_name: z.string(),
  id_field: z.string(),
  timestamp_field: z.string(),
  distinct_id_field: z.string(),
  ...sharedFields,
};

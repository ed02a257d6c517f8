import { z } from 'zod';
import { propertyFiltersSchema } from '../../filters/schema.ts';

const sharedFields = {
  name: z.string().nullish(),
  custom_name: z.string().nullish(),
  properties: propertyFiltersSchema.nullish(),
  fixedProperties: propertyFiltersSchema.nullish(),
  response: z.unknown().optional(),
  version: z.number().nullish(),
};

/** Fields of an event series, without those of one query kind such as `math` of trends. */
export const eventsNodeFields = {
  kind: z.literal('EventsNode'),
  /** The event name; null for all events. */
  event: z.string().nullish(),
  ...sharedFields,
};

/** Fields of an action series. Parsed so that the error can name it: actions are not supported. */
export const actionsNodeFields = { kind: z.literal('ActionsNode'), id: z.number(), ...sharedFields };

/** Fields of a warehouse series. Parsed so that the error can name it: these are not supported. */
export const dataWarehouseNodeFields = {
  kind: z.literal('DataWarehouseNode'),
  id: z.string(),
  table_name: z.string(),
  id_field: z.string(),
  timestamp_field: z.string(),
  distinct_id_field: z.string(),
  ...sharedFields,
};

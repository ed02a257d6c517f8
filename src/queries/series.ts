import { z } from 'zod';
import type { Expression } from '../dialect/ast.ts';
import { buildExpression, combineConditions } from '../dialect/ast_builders.ts';
import { type PropertyFilters, propertyFiltersSchema } from '../filters/schema.ts';
import { filtersCondition } from './filters.ts';
import { QueryError } from './query_errors.ts';

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

/** The fields of a series that select its events. */
interface SeriesFilter {
  readonly kind: string;
  readonly event?: string | null | undefined;
  readonly properties?: PropertyFilters | null | undefined;
  readonly fixedProperties?: PropertyFilters | null | undefined;
}

/**
 * The condition of a series on an event; null for all events.
 * @param attr path of the series, such as `query__series__0`
 * @throws QueryError for actions, which are not stored, and for warehouse tables
 */
export function seriesCondition(node: SeriesFilter, attr: string): Expression | null {
  rejectOtherKinds(node, attr);
  const { event, properties, fixedProperties } = node;
  const isEvent =
    event === null || event === undefined
      ? null
      : buildExpression('event = {event}', { event: { value: event } });
  return combineConditions('and', [
    isEvent,
    filtersCondition(properties, { scope: 'events', attr: `${attr}__properties` }),
    filtersCondition(fixedProperties, { scope: 'events', attr: `${attr}__fixedProperties` }),
  ]);
}

function rejectOtherKinds({ kind }: SeriesFilter, attr: string): void {
  if (kind === 'ActionsNode')
    throw new QueryError(
      'invalid_input',
      'Action does not exist. Use EventsNodes with its events and filters.',
      {
        attr: `${attr}__id`,
      },
    );
  if (kind === 'DataWarehouseNode')
    throw new QueryError(
      'not_supported',
      'Series over warehouse tables are not supported. Use a DialectQuery.',
      {
        attr: `${attr}__kind`,
      },
    );
}

/** The name of a series in results. */
export const seriesName = (node: {
  readonly custom_name?: string | null | undefined;
  readonly name?: string | null | undefined;
  readonly event?: string | null | undefined;
}): string => node.custom_name ?? node.name ?? node.event ?? 'All events';

import { buildExpression, combineConditions } from '../../dialect/ast_builders.ts';
import type { Expression } from '../../dialect/ast.ts';
import { filtersCondition } from '../filters.ts';
import type { PropertyFilters } from '../../filters/schema.ts';
import { QueryError } from '../query_errors.ts';

/** The fields of a series that select its events. */
export interface SeriesFilter {
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

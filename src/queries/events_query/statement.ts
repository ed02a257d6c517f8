import type { Expression, Select } from '../../dialect/ast.ts';
import { combineConditions, buildSelect } from '../../dialect/ast_builders.ts';
import type { QueryContext } from '../query_kind.ts';
import type { SelectWithItems } from '../item_errors.ts';
import { filterConditions, fieldConditions, requestedConditions } from './conditions.ts';
import { orderOf } from './order.ts';
import type { EventsQuery } from './schema.ts';
import { selectEntries, type EventEntry } from './select_entries.ts';

/** The SELECT of a query and its items. */
export interface EventsStatement extends SelectWithItems {
  readonly entries: readonly (EventEntry & { readonly columns: readonly Expression[] })[];
}

/**
 * Builds the SELECT of a query.
 * @param pointCondition the condition of an insight's point on an event
 * @throws QueryError with the path of the invalid field
 */
export function eventsStatement(
  query: EventsQuery,
  context: Pick<QueryContext, 'project' | 'now'>,
  pointCondition: Expression | null,
): EventsStatement {
  const { eventConditions, rowConditions } = requestedConditions(query.where);
  const entries = selectEntries(query.select, rowConditions.length > 0);
  const isGrouped = rowConditions.length > 0 || entries.some(({ isAggregate }) => isAggregate);
  const keys = isGrouped ? entries.flatMap((entry) => entry.keys) : [];
  const shape = buildSelect(
    `select 1 from events${keys.length > 0 ? ' group by 1' : ''} offset ${query.offset ?? 0}`,
  );
  const select: Select = {
    ...shape,
    columns: entries.flatMap(({ expressions }) => expressions),
    where: combineConditions('and', [
      fieldConditions(query, context),
      pointCondition,
      ...eventConditions.map(({ condition }) => condition),
    ]),
    groupBy: shape.groupBy && { ...shape.groupBy, items: keys },
    having: combineConditions(
      'and',
      rowConditions.map(({ condition }) => condition),
    ),
    orderBy: orderOf(query.orderBy, entries, isGrouped),
  };
  return {
    select,
    entries: entries.map((entry) => ({ ...entry, columns: entry.expressions })),
    conditions: [...filterConditions(query, context.project), ...eventConditions],
    groupConditions: rowConditions,
    ordered: query.orderBy?.length ?? 0,
  };
}

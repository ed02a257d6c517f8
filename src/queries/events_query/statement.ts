import type { Expression, Select } from '../../dialect/ast.ts';
import { joined, selectOf } from '../../dialect/build.ts';
import type { QueryContext } from '../query_kind.ts';
import type { SelectOfItems } from '../select_pieces.ts';
import { filterConditions, memberConditions, writtenConditions } from './conditions.ts';
import { orderOf } from './order.ts';
import type { EventsQuery } from './schema.ts';
import { selectEntries, type EventEntry } from './select_entries.ts';

/** The one SELECT that a query is, and the items that it is made of. */
export interface EventsStatement extends SelectOfItems {
  readonly entries: readonly (EventEntry & { readonly columns: readonly Expression[] })[];
}

/**
 * @param ofPoint what the point of an insight asks of an event
 * @throws QueryInvalid that names the member at fault
 */
export function eventsStatement(
  query: EventsQuery,
  context: Pick<QueryContext, 'project' | 'now'>,
  ofPoint: Expression | null,
): EventsStatement {
  const { ofEvents, ofRows } = writtenConditions(query.where);
  const entries = selectEntries(query.select, ofRows.length > 0);
  const isGrouped = ofRows.length > 0 || entries.some(({ isAggregate }) => isAggregate);
  const keys = isGrouped ? entries.flatMap((entry) => entry.keys) : [];
  const shape = selectOf(
    `select 1 from events${keys.length > 0 ? ' group by 1' : ''} offset ${query.offset ?? 0}`,
  );
  const select: Select = {
    ...shape,
    columns: entries.flatMap(({ expressions }) => expressions),
    where: joined('and', [
      memberConditions(query, context),
      ofPoint,
      ...ofEvents.map(({ condition }) => condition),
    ]),
    groupBy: shape.groupBy && { ...shape.groupBy, items: keys },
    having: joined(
      'and',
      ofRows.map(({ condition }) => condition),
    ),
    orderBy: orderOf(query.orderBy, entries, isGrouped),
  };
  return {
    select,
    entries: entries.map((entry) => ({ ...entry, columns: entry.expressions })),
    conditions: [...filterConditions(query, context.project), ...ofEvents],
    groupConditions: ofRows,
    ordered: query.orderBy?.length ?? 0,
  };
}

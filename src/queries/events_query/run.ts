import type { Relations } from '../../source/relations.ts';
import { openDialectReader } from '../dialect_reader.ts';
import type { QueryAnswer, QueryContext } from '../query_kind.ts';
import { readNamingItems } from '../select_pieces.ts';
import { pointCondition } from './point_events.ts';
import type { EventsQuery } from './schema.ts';
import { showRows, shownTypes } from './show_rows.ts';
import { eventsStatement } from './statement.ts';

const usualRows = 100;

/** Lists events, or counts what they have in common. @throws QueryInvalid that names the member at fault */
export async function runEvents(
  query: EventsQuery,
  context: QueryContext,
  relations: Relations,
): Promise<QueryAnswer> {
  const reader = await openDialectReader(context, relations);
  const planned = eventsStatement(query, context, await pointCondition(query.source, reader, context));
  const { entries } = planned;
  const limit = Math.min(query.limit ?? usualRows, context.row_limit);
  const { statement, rows, hasMore } = await readNamingItems(reader, planned, {
    rows: { fallback: limit, most: limit },
  });
  return {
    results: await showRows(reader, entries, rows),
    columns: entries.map(({ column }) => column),
    types: shownTypes(
      entries,
      statement.columns.map(({ typeName }) => typeName),
    ),
    hasMore,
    limit,
    offset: query.offset ?? 0,
    dialect_query: statement.printed,
  };
}

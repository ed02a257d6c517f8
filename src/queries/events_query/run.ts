import type { Relations } from '../../source/relations.ts';
import { openDialectReader } from '../dialect_reader.ts';
import type { QueryOutput, QueryContext } from '../query_kind.ts';
import { readWithItemErrors } from '../item_errors.ts';
import { pointCondition } from './point_events.ts';
import type { EventsQuery } from './schema.ts';
import { formatRows, columnTypes } from './format_rows.ts';
import { eventsStatement } from './statement.ts';

const defaultRows = 100;

/** Lists or aggregates events. @throws QueryError with the path of the invalid field */
export async function runEvents(
  query: EventsQuery,
  context: QueryContext,
  relations: Relations,
): Promise<QueryOutput> {
  const reader = await openDialectReader(context, relations);
  const planned = eventsStatement(query, context, await pointCondition(query.source, reader, context));
  const { entries } = planned;
  const limit = Math.min(query.limit ?? defaultRows, context.row_limit);
  const { statement, rows, hasMore } = await readWithItemErrors(reader, planned, {
    rows: { defaultLimit: limit, maxRows: limit },
  });
  return {
    results: await formatRows(reader, entries, rows),
    columns: entries.map(({ column }) => column),
    types: columnTypes(
      entries,
      statement.columns.map(({ typeName }) => typeName),
    ),
    hasMore,
    limit,
    offset: query.offset ?? 0,
    dialect_query: statement.printed,
  };
}

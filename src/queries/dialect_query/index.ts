import { compileQuery, type CompiledStatement } from '../../dialect/compile/compile_query.ts';
import { DialectError } from '../../dialect/dialect_error.ts';
import type { Relations } from '../../source/relations.ts';
import { QueryInvalid } from '../query_errors.ts';
import type { QueryContext, QueryKind } from '../query_kind.ts';
import { readRows } from '../read_rows.ts';
import { placeholdersOf, usedVariables } from './placeholders.ts';
import { dialectQuerySchema, type DialectQuery } from './schema.ts';
import { valueReader } from './shown_value.ts';
import { readSourceSchema } from './source_schema.ts';

/** Rows of a query without LIMIT. */
const usualRows = 100;
const asText = { getTypeParser: () => (text: string) => text };

/** A query in the dialect itself. */
export const dialectQueryKind = (relations: Relations): QueryKind<DialectQuery> => ({
  kind: 'DialectQuery',
  aliases: ['HogQLQuery'],
  schema: dialectQuerySchema,
  // As analysts know it: without a range of dates that could be read off, a query changes from day to day.
  freshness: () => ({ interval: 'day', date_to: null }),
  variables: usedVariables,
  override: (query, { date_from, date_to, properties }) => ({
    ...query,
    filters: {
      ...query.filters,
      ...((date_from ?? date_to ?? null) !== null && { dateRange: { date_from, date_to } }),
      properties: [...(query.filters?.properties ?? []), ...(properties ?? [])],
    },
  }),
  cacheForm: ({ query, values, variables, filters }) => ({ query, values, variables, filters }),
  run: async (query, context) => {
    const statement = await compile(query, context, relations);
    const { limit, hasExtraRow, columns } = statement;
    const most = limit ?? context.row_limit;
    const { rows } = await readRows(
      context,
      { text: statement.sql, values: statement.parameters },
      hasExtraRow ? most + 1 : most,
      asText,
    );
    const readers = columns.map(({ type }) => valueReader(type, context.project.timezone));
    const shown = rows
      .slice(0, most)
      .map((row) => readers.map((read, index) => read(row[index] as string | null)));
    return {
      results: shown,
      columns: columns.map(({ name }) => name),
      types: columns.map(({ name, typeName }) => [name, typeName]),
      hasMore: rows.length > most,
      limit: most,
      offset: statement.offset,
      dialect_query: statement.printed,
    };
  },
});

async function compile(
  query: DialectQuery,
  { connection, project, now, row_limit, variables }: QueryContext,
  relations: Relations,
): Promise<CompiledStatement> {
  const schema = await readSourceSchema(connection, relations);
  try {
    return compileQuery(
      query.query,
      {
        teamId: project.team_id,
        timezone: project.timezone,
        weekStartDay: project.week_start_day,
        now: now.toISOString(),
        schema,
      },
      {
        placeholders: placeholdersOf(query, variables),
        rows: { fallback: Math.min(usualRows, row_limit), most: row_limit },
      },
    );
  } catch (error) {
    if (!(error instanceof DialectError)) throw error;
    const { line, column, offset, length } = error;
    throw new QueryInvalid('dialect_error', error.message, {
      attr: 'query__query',
      position: { line, column, offset, length },
    });
  }
}

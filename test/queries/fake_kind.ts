import pg from 'pg';
import * as z from 'zod';
import { QueryError } from '../../src/queries/query_errors.ts';
import type { QueryKind } from '../../src/queries/query_kind.ts';
import { readRows } from '../../src/queries/dialect_reader.ts';
import { bindQueryKind, createQueryKinds } from '../../src/queries/parse_query.ts';

const schema = z.strictObject({
  kind: z.literal('StatementQuery'),
  statement: z.string().min(1),
  interval: z.enum(['minute', 'hour', 'day', 'week', 'month']).nullable().default(null),
  date_to: z.string().nullable().default(null),
  /** Bound to $1, $2, … of the statement, after the values of `variables`. */
  values: z.array(z.json()).default([]),
  /** Code names; their values are bound first. */
  variables: z.record(z.string(), z.json().nullable()).default({}),
  color: z.string().optional(),
});
type StatementQuery = z.infer<typeof schema>;

/** The parser of the PostgreSQL client for a type. */
const parserOf = pg.types.getTypeParser as (typeId: number) => (text: string) => unknown;

/** A kind that runs any SQL statement, unlike the kinds of the product. */
const statementQuery: QueryKind<StatementQuery> = {
  kind: 'StatementQuery',
  aliases: ['Statement'],
  schema,
  freshness: ({ interval, date_to }) => ({
    interval,
    date_to: date_to === null ? null : new Date(date_to),
    next_refresh_ms: 180_000,
  }),
  variables: ({ variables }) =>
    Object.entries(variables).map(([code_name, value]) => ({
      code_name,
      id: null,
      ...(value === null ? {} : { value }),
    })),
  override: (query, { date_from, properties }) => {
    if (properties?.includes('bad'))
      throw new QueryError('invalid_input', 'Not a filter.', { attr: 'filters_override__properties__0' });
    return { ...query, values: [...query.values, date_from ?? ''] };
  },
  normalizeForCache: (query) => ({ ...query, color: undefined }),
  run: async ({ statement, values, variables: names }, context) => {
    const own = Object.keys(names).map((name) => context.variables[name]);
    const { rows, columns } = await readRows(
      context,
      { text: statement, values: [...own, ...values] },
      context.row_limit + 1,
    );
    const parsers = columns.map(({ type_id }) => parserOf(type_id));
    const parsed = rows.map((row) =>
      row.map((value, index) => (value === null ? null : parsers[index]?.(value))),
    );
    return {
      results: parsed.slice(0, context.row_limit),
      columns: columns.map(({ name }) => name),
      types: columns.map(({ name, type_id }) => [name, type_id]),
      hasMore: rows.length > context.row_limit,
      limit: context.row_limit,
      offset: 0,
      dialect_query: statement,
    };
  },
};

export const fakeKinds = createQueryKinds([bindQueryKind(statementQuery)]);

/** A query of the fake kind. */
export const statement = (text: string, more: object = {}) => ({
  kind: 'StatementQuery',
  statement: text,
  ...more,
});

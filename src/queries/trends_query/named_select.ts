import type { Expression, From, Query, QueryCte, Select, SetOperation } from '@exportd/dialect/ast';
import { buildAlias, buildField, buildOrderItem, buildSelect } from '@exportd/dialect/ast_builders';

const nowhere = { start: 0, end: 0 };

const empty = buildSelect('select 1');

interface SelectParts {
  readonly from: From;
  readonly where?: Expression | null;
  /** Names of GROUP BY columns. */
  readonly groupBy?: readonly string[];
  readonly orderBy?: readonly { readonly by: Expression; readonly descending?: boolean }[];
  readonly limit?: number;
  readonly queries?: Readonly<Record<string, Query>>;
}

/** CTEs; each can use those before it. */
const namedQueries = (queries: Readonly<Record<string, Query>>): readonly QueryCte[] =>
  Object.entries(queries).map(([name, query]) => ({
    kind: 'query_cte',
    name: { kind: 'name', text: name, ...nowhere },
    query,
    ...nowhere,
  }));

/** Builds a SELECT of named columns. */
export function buildNamedSelect(columns: Readonly<Record<string, Expression>>, parts: SelectParts): Select {
  const { from, where = null, groupBy = [], orderBy = [], limit, queries = {} } = parts;
  return {
    ...empty,
    ctes: namedQueries(queries),
    columns: Object.entries(columns).map(([name, expression]) => buildAlias(expression, name)),
    from,
    where,
    groupBy:
      groupBy.length === 0
        ? null
        : {
            kind: 'group_by',
            mode: 'plain',
            items: groupBy.map((name) => buildField(name)),
            withTotals: false,
            ...nowhere,
          },
    orderBy: orderBy.map(({ by, descending = false }) => buildOrderItem(by, descending)),
    limit:
      limit === undefined
        ? null
        : {
            kind: 'limit',
            count: { kind: 'number', text: String(limit), ...nowhere },
            percent: false,
            offset: null,
            withTies: false,
            ...nowhere,
          },
  };
}

/** UNION ALL of several queries. */
export const unionOf = (operands: readonly Select[]): SetOperation => ({
  kind: 'set_operation',
  operator: 'union all',
  operands,
  orderBy: [],
  limit: null,
  ...nowhere,
});

/** Columns, unchanged. */
export const fieldsNamed = (names: readonly string[]): Readonly<Record<string, Expression>> =>
  Object.fromEntries(names.map((name) => [name, buildField(name)]));

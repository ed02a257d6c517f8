// Queries and their clauses.

import type { Expression, Window } from './ast_expressions.ts';
import type { Name, NodeOf, SetOperator, Table, UsingConstraint } from './ast_leaves.ts';

export type Query = Select | SetOperation;

/** Queries combined left to right by one operator. INTERSECT binds tighter than the others. */
export type SetOperation = NodeOf<
  'set_operation',
  {
    operator: SetOperator;
    /** At least two. */
    operands: readonly Query[];
    /** Applies to the whole set operation. The text must put the last operand in parentheses. */
    orderBy: readonly OrderItem[];
    limit: Limit | null;
  }
>;

export type Select = NodeOf<
  'select',
  {
    ctes: readonly Cte[];
    distinct: boolean;
    /** Expressions of DISTINCT ON; empty without it. */
    distinctOn: readonly Expression[];
    columns: readonly Expression[];
    from: From | null;
    arrayJoin: ArrayJoin | null;
    prewhere: Expression | null;
    where: Expression | null;
    groupBy: GroupBy | null;
    having: Expression | null;
    qualify: Expression | null;
    windows: readonly NamedWindow[];
    orderBy: readonly OrderItem[];
    limitBy: LimitBy | null;
    limit: Limit | null;
  }
>;

export type Cte = QueryCte | ColumnCte;

/** `WITH name AS (SELECT …)`. */
export type QueryCte = NodeOf<'query_cte', { name: Name; query: Query }>;

/** `WITH expression AS name`: an alias for an expression throughout the query. */
export type ColumnCte = NodeOf<'column_cte', { expression: Expression; name: Name }>;

/** LEFT ARRAY JOIN keeps rows whose array is empty. */
export type ArrayJoin = NodeOf<'array_join', { left: boolean; items: readonly Expression[] }>;

export type GroupBy = NodeOf<
  'group_by',
  {
    /** `all` has no items: the keys come from SELECT. */
    mode: 'plain' | 'all' | 'rollup' | 'cube' | 'grouping_sets';
    /** With grouping sets, each item is a set. */
    items: readonly (Expression | GroupingSet)[];
    withTotals: boolean;
  }
>;

export type GroupingSet = NodeOf<'grouping_set', { items: readonly Expression[] }>;

export type NamedWindow = NodeOf<'named_window', { name: Name; window: Window }>;

export type OrderItem = NodeOf<
  'order_item',
  { expression: Expression; descending: boolean; nulls: 'first' | 'last' | null; fill: Fill | null }
>;

/** WITH FILL [FROM …] [TO …] [STEP …]. */
export type Fill = NodeOf<
  'fill',
  { from: Expression | null; to: Expression | null; step: Expression | null }
>;

/** LIMIT count [OFFSET offset] BY expressions. */
export type LimitBy = NodeOf<
  'limit_by',
  { count: Expression; offset: Expression | null; by: readonly Expression[] }
>;

/** LIMIT, OFFSET or both. */
export type Limit = NodeOf<
  'limit',
  {
    count: Expression | null;
    /** `LIMIT count PERCENT`: `count` is a percentage of all rows. */
    percent: boolean;
    offset: Expression | null;
    withTies: boolean;
  }
>;

export type From = Table | TableFunction | DerivedTable | Join;

export type TableFunction = NodeOf<
  'table_function',
  { name: Name; arguments: readonly Expression[]; alias: Name | null }
>;

export type DerivedTable = NodeOf<'derived_table', { query: Query; alias: Name | null }>;

export type Join = NodeOf<
  'join',
  {
    type: 'inner' | 'left' | 'right' | 'full' | 'cross';
    strictness: 'any' | 'all' | 'asof' | 'semi' | 'anti' | null;
    left: From;
    right: From;
    /** Null only for a cross join. */
    constraint: OnConstraint | UsingConstraint | null;
  }
>;

export type OnConstraint = NodeOf<'on', { condition: Expression }>;

import type { Expression, Query } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import type { TypedQuery, Value } from '../resolve/value.ts';
import { identifier, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';

/**
 * How an expression is used. In a filter null is equivalent to false, so plain comparisons that can use an index
 * suffice. Joins always compare plainly.
 */
export type ExpressionUse = 'value' | 'filter' | 'join';

/** A compiled query; its columns are called `c1`, `c2`, …. */
export interface CompiledQuery {
  readonly sql: Sql;
  readonly columns: readonly CompiledColumn[];
  /**
   * The number of tables that PostgreSQL plans together with the outer query: all tables of a plain query, 1 for any
   * other.
   */
  readonly tableCount: number;
  readonly typed: TypedQuery;
  /** The query of the totals row, with the same columns. */
  readonly totals?: Sql;
}

export interface CompiledColumn {
  readonly name: string;
  readonly type: Type;
}

/** The mutually recursive compilation rules. They are injected, so that files do not import in a circle. */
export interface Compiler {
  readonly value: (node: Expression, scope: Scope, use?: ExpressionUse) => Value;
  /** Compiles a subquery, which cannot see the rows of the outer query. @throws DialectError for WITH TOTALS */
  readonly query: (query: Query, scope: Scope) => CompiledQuery;
}

export const columnAlias = (position: number): Sql => identifier(`c${position}`);

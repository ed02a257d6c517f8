import type { Expression, Query } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Value } from '../resolve/value.ts';
import { identifier, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';

/**
 * What a condition is for. In a filter null counts as false, so that a plain comparison does, which can use an index;
 * joins compare plainly always.
 */
export type Use = 'value' | 'filter' | 'join';

/** A query whose columns are called `c1`, `c2`, … in SQL. */
export interface CompiledQuery {
  readonly sql: Sql;
  readonly columns: readonly CompiledColumn[];
  /** How many tables PostgreSQL plans together with those around it: what a plain query joins, one of any other. */
  readonly tableCount: number;
  /** The query of the row of WITH TOTALS, with the same columns. */
  readonly totals?: Sql;
}

export interface CompiledColumn {
  readonly name: string;
  readonly type: Type;
}

/** The rules of compiling that need each other; handed in, so that the files need no cycle. */
export interface Compiler {
  readonly value: (node: Expression, scope: Scope, use?: Use) => Value;
  /** A query inside another one, whose rows it cannot see. @throws DialectError for one WITH TOTALS */
  readonly query: (query: Query, scope: Scope) => CompiledQuery;
}

export const outputName = (position: number): Sql => identifier(`c${position}`);

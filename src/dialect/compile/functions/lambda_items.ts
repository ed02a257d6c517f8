import type { Expression } from '../../ast.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Value } from '../../resolve/value.ts';
import type { Sql } from '../../sql.ts';
import type { Type } from '../../types.ts';

/** The parallel items of one or more arrays, and the result of the lambda. */
export interface LambdaItems {
  /** FROM item with one row per item, whose index is `at`. */
  readonly rows: Sql;
  readonly at: Sql;
  /** The item as a value and as jsonb. */
  readonly item: Value;
  readonly json: Sql;
  /** The result of the lambda; without a lambda, the item. */
  readonly result: Value;
  readonly arrays: readonly Value[];
  readonly body: Expression;
}

/** Creates the SQL of a function that takes a lambda. */
export type LambdaEmitter = (items: LambdaItems, scope: Scope) => { readonly sql: Sql; readonly type: Type };

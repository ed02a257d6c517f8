import type { Expression, Query } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import { mergeTraits, readFrom, type TypedQuery, type Value } from '../resolve/value.ts';
import { commaList, generatedName, identifier, rawSql, type Sql, sql } from '../sql.ts';
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

const values = new WeakMap<Scope, Map<Expression, Partial<Record<ExpressionUse, Value>>>>();

/** The value of an expression that was compiled before in the same scope. */
export const knownValue = (node: Expression, scope: Scope, use: ExpressionUse): Value | undefined =>
  values.get(scope)?.get(node)?.[use];

/**
 * Remembers a compiled expression. Around a window function, each level is first compiled for the inner query; without
 * this, every level would compile all levels below it again.
 */
export function rememberValue(node: Expression, scope: Scope, use: ExpressionUse, value: Value): void {
  const known = values.get(scope) ?? new Map<Expression, Partial<Record<ExpressionUse, Value>>>();
  values.set(scope, known);
  known.set(node, { ...known.get(node), [use]: value });
}

/** Shorter fragments are repeated rather than computed in a subquery, which costs more than they do. */
const maxRepeatedFragment = 60;

/**
 * SQL that uses values more than once. Long values are computed once in a subquery. Window functions are repeated,
 * because they cannot move.
 */
export function computeOnce(values: readonly Value[], body: (...fragments: readonly Sql[]) => Sql): Sql {
  const fragments = values.map((value) => value.sql);
  const isRepeated =
    fragments.every(({ length }) => length <= maxRepeatedFragment) || mergeTraits(values).window !== null;
  return isRepeated ? body(...fragments) : computeSqlOnce(fragments, body);
}

/** The same for fragments without a window function. */
export function computeSqlOnce(fragments: readonly Sql[], body: (...fragments: readonly Sql[]) => Sql): Sql {
  const alias = generatedName('once');
  const names = fragments.map((_, index) => rawSql(`v${index}`));
  const selected = fragments.map((fragment, index) => sql`${fragment} as ${names[index] ?? sql``}`);
  const columns = names.map((name) => sql`${alias}.${name}`);
  return sql`(select ${body(...columns)} from (select ${commaList(selected)} offset 0) as ${alias})`;
}

/** Shorter operands are repeated, so that PostgreSQL can use indexes. */
const maxRepeatedOperand = 500;

/**
 * A value that reads an operand several times. A long operand is computed once, in a subquery: repeating it at each level
 * would make nested SQL exponentially long.
 */
export function withSharedOperand(operand: Value, make: (operand: Value) => Value): Value {
  const isRepeated =
    operand.sql.length <= maxRepeatedOperand ||
    operand.constant !== undefined ||
    operand.traits.window !== null;
  if (isRepeated) return make(operand);
  const alias = generatedName('operand');
  const value = make(readFrom(operand, { sql: sql`${alias}.v` }, operand.traits));
  return { ...value, sql: sql`(select ${value.sql} from (select ${operand.sql} as v offset 0) as ${alias})` };
}

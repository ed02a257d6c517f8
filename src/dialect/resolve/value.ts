import { hash } from 'node:crypto';
import type { Node } from '../ast_node.ts';
import type { PropertyTypes } from '../schema.ts';
import type { Sql } from '../sql.ts';
import type { Type } from '../types.ts';
import { foldConstants, type Constant } from './fold_constants.ts';

/** Traits of an expression besides its value, collected from its parts. */
export interface ExpressionTraits {
  /** An aggregate function in it. */
  readonly aggregate: Node | null;
  /** A window function in it. */
  readonly window: Node | null;
  /** A row's column in it, outside aggregates and GROUP BY keys. */
  readonly column: Node | null;
  /** A GROUP BY key in it. */
  readonly key: Node | null;
}

export const noTraits: ExpressionTraits = { aggregate: null, window: null, column: null, key: null };

/** A path into a JSON value that was read as text. Further steps extend it. */
export interface JsonPath {
  readonly root: Sql;
  readonly keys: readonly Sql[];
}

/** What only some values have. */
interface Details {
  readonly traits: ExpressionTraits;
  /** Set for literals, and for operations on literals that are computed when the query is compiled. */
  readonly constant?: Constant;
  readonly json?: JsonPath;
  /** Declared types of the properties in a JSON column. */
  readonly properties?: PropertyTypes;
  /** The items of a tuple or array literal. */
  readonly items?: readonly Value[];
  /** The query of a subquery. */
  readonly query?: TypedQuery;
}

/** A clause of a query with the values that it computes. */
interface TypedClause {
  readonly name: string;
  readonly values: readonly Value[];
}

/** A query of the typed representation. */
export interface TypedQuery {
  /** `select`, or the operator of a set operation. */
  readonly operation: string;
  /** What it reads: the queries in FROM, or the operands of a set operation. */
  readonly sources: readonly TypedQuery[];
  readonly clauses: readonly TypedClause[];
}

declare const derived: unique symbol;

/**
 * A node of the typed representation: an operation on operands, with the type of its result and the SQL that computes it.
 * Values with the same operation and operands mean the same, whatever their SQL; see `identityOf`. Only `derive` makes
 * them.
 */
export interface Value extends Details {
  /** Everything besides the operands that the result depends on: `column 1.event`, `literal 5`, `cast Date`. */
  readonly operation: string;
  readonly operands: readonly Value[];
  readonly type: Type;
  readonly sql: Sql;
  readonly [derived]: true;
}

export function mergeTraits(values: readonly { readonly traits: ExpressionTraits }[]): ExpressionTraits {
  let merged = noTraits;
  for (const { traits } of values)
    if (traits !== noTraits)
      merged = {
        aggregate: merged.aggregate ?? traits.aggregate,
        window: merged.window ?? traits.window,
        column: merged.column ?? traits.column,
        key: merged.key ?? traits.key,
      };
  return merged;
}

/** An operation on other values. Its traits are those of the operands unless given. */
export function derive(
  operation: string,
  operands: readonly Value[],
  type: Type,
  sql: Sql,
  details: Partial<Details> = {},
): Value {
  const value = {
    operation,
    operands,
    type,
    sql,
    traits: details.traits ?? mergeTraits(operands),
    ...details,
  };
  const folded = foldConstants(operation, operands, type);
  return (folded === undefined ? value : { ...value, ...folded }) as Value;
}

/** The same value, read from a column of an inner query. */
export function readFrom(
  { operation, operands, type, properties }: Value,
  column: { readonly sql: Sql; readonly type?: Type },
  traits: ExpressionTraits,
): Value {
  const details = properties === undefined ? { traits } : { traits, properties };
  return derive(operation, operands, column.type ?? type, column.sql, details);
}

const identities = new WeakMap<Value, string>();

/**
 * Equal for values that mean the same. It is a digest of the operation and of the operands' identities, so computing all
 * of a tree takes time linear in its nodes.
 */
export function identityOf(value: Value): string {
  const known = identities.get(value);
  if (known !== undefined) return known;
  // A stack of its own, because aliases that read each other can nest deeply.
  const pending = [value];
  for (let one = pending.at(-1); one !== undefined; one = pending.at(-1)) {
    const missing = one.operands.filter((operand) => !identities.has(operand));
    if (missing.length > 0) {
      for (const operand of missing) pending.push(operand);
      continue;
    }
    const parts = [one.operation, ...one.operands.map((operand) => identities.get(operand))];
    identities.set(one, hash('sha256', JSON.stringify(parts), 'base64'));
    pending.pop();
  }
  return identities.get(value) ?? '';
}

/** Whether two values mean the same. */
export const isSame = (one: Value, other: Value): boolean => identityOf(one) === identityOf(other);

const columnPrefix = 'column ';

/** The operation that reads a column with an identity. */
export const columnOperation = (identity: string): string => `${columnPrefix}${identity}`;

/** The identity of the column that a value is, unchanged; undefined for other values. */
export const columnIdentityOf = ({ operation }: Value): string | undefined =>
  operation.startsWith(columnPrefix) ? operation.slice(columnPrefix.length) : undefined;

/** Whether a condition holds for a value and for all that it is computed from. */
export function everyOperand(value: Value, holds: (operand: Value) => boolean): boolean {
  const pending = [value];
  const seen = new Set<Value>();
  for (let one = pending.pop(); one !== undefined; one = pending.pop()) {
    if (seen.has(one)) continue;
    seen.add(one);
    if (!holds(one)) return false;
    pending.push(...one.operands);
  }
  return true;
}

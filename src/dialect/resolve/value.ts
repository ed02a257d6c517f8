import { hash } from 'node:crypto';
import type { Node } from '../ast.ts';
import { bind, type Sql } from '../sql.ts';
import { type PropertyScope, type Type, withoutUnmatched } from '../types.ts';

/** A value that is known when the query is compiled. */
export type Constant = string | number | bigint | boolean | null;

/** What folding reads of an operand. */
interface Operand {
  readonly constant?: Constant;
}

/** The result of an operation on constants. */
interface Folded {
  readonly constant: Constant;
  readonly sql: Sql;
}

const [minInteger, maxInteger] = [-(2n ** 63n), 2n ** 63n - 1n];

const integerOperations: Readonly<Record<string, (left: bigint, right: bigint) => bigint>> = {
  '+': (left, right) => left + right,
  '-': (left, right) => left - right,
  '*': (left, right) => left * right,
};

const floatOperations: Readonly<Record<string, (left: number, right: number) => number>> = {
  '+': (left, right) => left + right,
  '-': (left, right) => left - right,
  '*': (left, right) => left * right,
  '/': (left, right) => left / right,
};

/**
 * Computes an operation whose operands are all constants; undefined if it is not one, or if PostgreSQL must decide: its
 * integers and floats fail on overflow, and its floats on underflow.
 */
function foldConstants(operation: string, operands: readonly Operand[], { kind }: Type): Folded | undefined {
  const [left, right, another] = operands.map(({ constant }) => constant);
  if (left === undefined || another !== undefined) return undefined;
  if (operation === 'negate') {
    if (typeof left === 'bigint') return integer(-left);
    return typeof left === 'number' ? float(-left) : undefined;
  }
  if (kind === 'integer' && typeof left === 'bigint' && typeof right === 'bigint') {
    const result = integerOperations[operation]?.(left, right);
    return result === undefined ? undefined : integer(result);
  }
  if (kind === 'float' && isNumber(left) && isNumber(right)) {
    const result = floatOperations[operation]?.(Number(left), Number(right));
    return result === undefined || !isNormal(operation, result, Number(left), Number(right))
      ? undefined
      : float(result);
  }
  return undefined;
}

const isNumber = (constant: Constant | undefined): constant is number | bigint =>
  typeof constant === 'number' || typeof constant === 'bigint';

/** Whether PostgreSQL computes the same number without an error. A product or quotient of 0 may have underflowed. */
const isNormal = (operation: string, result: number, left: number, right: number): boolean =>
  Number.isFinite(result) &&
  (result !== 0 || operation === '+' || operation === '-' || left === 0 || right === 0);

const integer = (constant: bigint): Folded | undefined =>
  constant < minInteger || constant > maxInteger
    ? undefined
    : { constant, sql: bind(String(constant), 'int8') };

const float = (constant: number): Folded => ({ constant, sql: bind(String(constant), 'float8') });

/** Traits of an expression besides its value, collected from its parts. */
interface ExpressionTraits {
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
  /** Whose properties a JSON column has. */
  readonly propertiesOf?: PropertyScope;
  /** The text of a property that is read as its inferred type. */
  readonly text?: Value;
  /** What a column stores that has '' instead of null. */
  readonly stored?: () => Sql;
  /** The same text with the blanks that PostgreSQL prints in arrays and objects; see `spacedSql`. */
  readonly spaced?: Sql;
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

/** Aggregates that are null only if all their values are. */
const extremes = /^aggregate (min|max|any)( If)?( \{|$)/;

/**
 * An operation on other values. Its traits are those of the operands unless given. Only columns, and extremes of them, are
 * null just because an outer join found no row; an operation may make a null of its own.
 */
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
    type: operands.length === 0 || extremes.test(operation) ? type : withoutUnmatched(type),
    sql,
    traits: details.traits ?? mergeTraits(operands),
    ...details,
  };
  const folded = foldConstants(operation, operands, type);
  return (folded === undefined ? value : { ...value, ...folded }) as Value;
}

/** The same value, read from a column of an inner query. */
export function readFrom(
  { operation, operands, type, propertiesOf }: Value,
  column: { readonly sql: Sql; readonly type?: Type },
  traits: ExpressionTraits,
): Value {
  const details = propertiesOf === undefined ? { traits } : { traits, propertiesOf };
  return derive(operation, operands, column.type ?? type, column.sql, details);
}

const valueIdentities = new WeakMap<Value, string>();

/**
 * Equal for values that mean the same. It is a digest of the operation and of the operands' identities, so computing all
 * of a tree takes time linear in its nodes.
 */
export function identityOf(value: Value): string {
  const known = valueIdentities.get(value);
  if (known !== undefined) return known;
  // A stack of its own, because aliases that read each other can nest deeply.
  const pending = [value];
  for (let one = pending.at(-1); one !== undefined; one = pending.at(-1)) {
    const missing = one.operands.filter((operand) => !valueIdentities.has(operand));
    if (missing.length > 0) {
      for (const operand of missing) pending.push(operand);
      continue;
    }
    const parts = [one.operation, ...one.operands.map((operand) => valueIdentities.get(operand))];
    valueIdentities.set(one, hash('sha256', JSON.stringify(parts), 'base64'));
    pending.pop();
  }
  return valueIdentities.get(value) ?? '';
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

const syntaxIdentities = new WeakMap<Node, string>();

/**
 * Equal for trees that print the same text. It is a digest of the node's words and its children's identities, so
 * computing it for all queries of a text takes time linear in the text.
 */
export function syntaxIdentity(node: Node): string {
  const known = syntaxIdentities.get(node);
  if (known !== undefined) return known;
  const identity = hash('sha256', JSON.stringify(Object.entries(node).map(partOf)), 'base64');
  syntaxIdentities.set(node, identity);
  return identity;
}

/** A property of a node without the positions in the text. */
const partOf = ([name, value]: [string, unknown]): unknown =>
  name === 'start' || name === 'end' ? null : [name, summaryOf(value)];

function summaryOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(summaryOf);
  return typeof value === 'object' && value !== null ? syntaxIdentity(value as Node) : (value ?? null);
}

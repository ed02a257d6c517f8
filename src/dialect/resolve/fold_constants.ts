import { bind, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';

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
export function foldConstants(
  operation: string,
  operands: readonly Operand[],
  { kind }: Type,
): Folded | undefined {
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

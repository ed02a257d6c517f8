import type { ReferenceType } from './types.ts';

/** A length of time: months and days of a calendar, and elapsed microseconds. */
export interface Duration {
  readonly months: number;
  readonly days: number;
  readonly microseconds: bigint;
}

/**
 * A value of the reference interpreter. Its type says what it means: a date is a string `2026-11-23`, a datetime the
 * microseconds since 1970, a decimal a number.
 */
export type Value = null | boolean | bigint | number | string | Duration | readonly Value[];

/** Thrown where a query leaves the result open, such as a LIMIT that separates equal rows. */
export class AmbiguousResultError extends Error {
  override readonly name = 'AmbiguousResultError';
}

/** Thrown for queries that the interpreter does not cover or that are invalid. */
export class UnsupportedQueryError extends Error {
  override readonly name = 'UnsupportedQueryError';
}

/** Thrown for values beyond the range of a type, where the product reports an error too. */
export class RangeError extends Error {
  override readonly name = 'RangeError';
}

export const unsupported = (what: string): never => {
  throw new UnsupportedQueryError(what);
};

/** ClickHouse has no null arrays: it applies functions to a default value instead. */
export const listOf = (value: Value): readonly Value[] =>
  Array.isArray(value) ? (value as readonly Value[]) : unsupported('A null array.');

/** A text that is equal for equal values. NaN equals itself; -0 equals 0. */
export function identityOf(value: Value): string {
  if (typeof value === 'number') return Object.is(value, -0) ? '0' : String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (value === null || typeof value !== 'object') return String(value);
  if ('months' in value) return `${value.months}/${value.days}/${value.microseconds}`;
  return `[${value.map((item) => identityOf(item)).join(',')}]`;
}

export const isSame = (left: Value, right: Value): boolean => identityOf(left) === identityOf(right);

/** Orders two non-null values of one type: strings by bytes, NaN after all numbers, false before true. */
export function compare(left: Value, right: Value): number {
  if (typeof left === 'string' && typeof right === 'string') return compareBytes(left, right);
  if (typeof left === 'number' && typeof right === 'number') return compareNumbers(left, right);
  if (typeof left === 'bigint' && typeof right === 'bigint') return left < right ? -1 : left > right ? 1 : 0;
  if (typeof left === 'boolean' && typeof right === 'boolean') return Number(left) - Number(right);
  return unsupported('Values of this type have no order.');
}

function compareNumbers(left: number, right: number): number {
  if (Number.isNaN(left) || Number.isNaN(right))
    return Number(Number.isNaN(left)) - Number(Number.isNaN(right));
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Code points are in the order of their UTF-8 bytes; UTF-16 code units are not. */
function compareBytes(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

/** The value that stands for a missing one where a type has no null. */
export function defaultOf(type: ReferenceType): Value {
  if (type.nullable) return null;
  switch (type.kind) {
    case 'integer':
    case 'datetime':
      return 0n;
    case 'float':
    case 'decimal':
      return 0;
    case 'string':
      return '';
    case 'boolean':
      return false;
    case 'date':
      return '1970-01-01';
    case 'array':
      return [];
    case 'uuid':
      return '00000000-0000-0000-0000-000000000000';
    case 'interval':
    case 'null':
      return unsupported(`A default of ${type.kind}.`);
  }
}

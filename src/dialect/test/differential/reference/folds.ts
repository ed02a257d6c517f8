import type { ReferenceType } from './types.ts';
import { AmbiguousResultError, compare, defaultOf, identityOf, unsupported, type Value } from './values.ts';

export const isDistinctByNature = (name: string): boolean =>
  ['countDistinct', 'uniq', 'uniqExact', 'groupUniqArray'].includes(name);

interface FoldOptions {
  readonly type: ReferenceType;
  /** The level of a quantile. */
  readonly level: number;
}

/** The result of an aggregate over the arguments of all rows, none of which are null. */
export function foldAggregate(
  name: string,
  tuples: readonly (readonly Value[])[],
  { type, level }: FoldOptions,
): Value {
  const values = tuples.map(([first = null]) => first);
  const numbers = (): readonly number[] => values.map(Number);
  const missing = (): Value => defaultOf(type);
  const noNumber = type.nullable ? null : NaN;
  switch (name) {
    case 'count':
    case 'countDistinct':
    case 'uniq':
    case 'uniqExact':
      return BigInt(tuples.length);
    case 'sum':
      if (values.length === 0) return missing();
      return type.kind === 'integer'
        ? (values as readonly bigint[]).reduce((sum, value) => sum + value, 0n)
        : sumOf(numbers());
    case 'avg':
      return values.length === 0 ? noNumber : sumOf(numbers()) / values.length;
    case 'min':
      return values.length === 0 ? missing() : values.reduce((a, b) => (compare(b, a) < 0 ? b : a));
    case 'max':
      return values.length === 0 ? missing() : values.reduce((a, b) => (compare(b, a) > 0 ? b : a));
    case 'any':
      return values.length === 0 ? missing() : only(values);
    case 'argMin':
    case 'argMax':
      return values.length === 0 ? missing() : argExtreme(tuples, name === 'argMin' ? -1 : 1);
    case 'groupArray':
    case 'groupUniqArray':
      return values;
    case 'groupBitAnd':
    case 'groupBitOr':
    case 'groupBitXor':
      return values.length === 0 && type.nullable ? null : bitsOf(name, values as readonly bigint[]);
    case 'median':
    case 'quantile':
      return values.length === 0 ? noNumber : quantile(numbers(), level);
    case 'varPop':
      return values.length === 0 ? noNumber : variance(numbers(), 0);
    case 'stddevPop':
      return values.length === 0 ? noNumber : Math.sqrt(variance(numbers(), 0));
    case 'varSamp':
      return values.length === 0 ? noNumber : values.length === 1 ? NaN : variance(numbers(), 1);
    default:
      return unsupported(name);
  }
}

const bitsOf = (name: string, values: readonly bigint[]): bigint =>
  name === 'groupBitAnd'
    ? values.reduce((a, b) => a & b, -1n)
    : values.reduce((a, b) => (name === 'groupBitOr' ? a | b : a ^ b), 0n);

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** @throws AmbiguousResultError unless all values are the same */
function only(values: readonly Value[]): Value {
  if (new Set(values.map(identityOf)).size > 1) throw new AmbiguousResultError('Any of several values.');
  return values[0] ?? null;
}

function argExtreme(tuples: readonly (readonly Value[])[], sign: number): Value {
  const best = tuples.reduce((a, b) => (compare(b[1] ?? null, a[1] ?? null) * sign > 0 ? b : a));
  return only(
    tuples.filter((tuple) => compare(tuple[1] ?? null, best[1] ?? null) === 0).map(([first = null]) => first),
  );
}

/** Interpolates between the two values next to a level. */
function quantile(values: readonly number[], level: number): number {
  const sorted = [...values].sort(compare);
  const position = level * (sorted.length - 1);
  const low = sorted[Math.floor(position)] ?? NaN;
  const high = sorted[Math.ceil(position)] ?? NaN;
  return Math.floor(position) === Math.ceil(position)
    ? low
    : low + (high - low) * (position - Math.floor(position));
}

function variance(values: readonly number[], less: number): number {
  const mean = sumOf(values) / values.length;
  return sumOf(values.map((value) => (value - mean) ** 2)) / (values.length - less);
}

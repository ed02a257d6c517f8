import { nullEntry, strictEntry, type FunctionEntry } from './function_entry.ts';
import { typeOf } from './types.ts';
import { compare, RangeError, type Value } from './values.ts';

/** Halves are rounded to even. */
function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

const greatestDivisor = (a: bigint, b: bigint): bigint =>
  b === 0n ? (a < 0n ? -a : a) : greatestDivisor(b, a % b);

const extreme =
  (sign: number) =>
  (...values: readonly Value[]): Value => {
    const [first = null, ...rest] = values.filter((value) => value !== null);
    return rest.reduce((best, value) => (compare(value, best) * sign > 0 ? value : best), first);
  };

const onFloat = (name: string, apply: (value: number) => number): FunctionEntry =>
  strictEntry(name, ['float'], 'float', apply);

/** Arithmetic, rounding and bits. */
export const numberFunctions: readonly FunctionEntry[] = [
  strictEntry('abs', ['integer'], 'integer', (x: bigint) => (x < 0n ? -x : x)),
  onFloat('abs', Math.abs),
  strictEntry('negate', ['integer'], 'integer', (x: bigint) => -x),
  onFloat('negate', (x) => -x),
  strictEntry('plus', ['integer', 'integer'], 'integer', (x: bigint, y: bigint) => x + y),
  strictEntry('minus', ['float', 'float'], 'float', (x: number, y: number) => x - y),
  strictEntry('multiply', ['integer', 'integer'], 'integer', (x: bigint, y: bigint) => {
    if (x * y !== BigInt.asIntN(64, x * y)) throw new RangeError('An integer is out of range.');
    return x * y;
  }),
  strictEntry('intDiv', ['integer', 'integer'], typeOf('integer', true), (x: bigint, y: bigint) =>
    y === 0n ? null : x / y,
  ),
  strictEntry('modulo', ['integer', 'integer'], typeOf('integer', true), (x: bigint, y: bigint) =>
    y === 0n ? null : x % y,
  ),
  strictEntry('gcd', ['integer', 'integer'], 'integer', greatestDivisor),
  strictEntry('bitAnd', ['integer', 'integer'], 'integer', (x: bigint, y: bigint) => x & y),
  strictEntry('bitOr', ['integer', 'integer'], 'integer', (x: bigint, y: bigint) => x | y),
  strictEntry('bitXor', ['integer', 'integer'], 'integer', (x: bigint, y: bigint) => x ^ y),
  strictEntry('sign', ['integer'], 'integer', (x: bigint) => (x < 0n ? -1n : x > 0n ? 1n : 0n)),
  onFloat('floor', Math.floor),
  onFloat('ceil', Math.ceil),
  onFloat('trunc', Math.trunc),
  onFloat('round', roundHalfEven),
  strictEntry('round', ['integer'], 'integer', (x: bigint) => x),
  onFloat('sqrt', Math.sqrt),
  onFloat('exp', (x) => Math.exp(x)),
  strictEntry('isNaN', ['float'], 'boolean', (x: number) => Number.isNaN(x)),
  strictEntry('isFinite', ['float'], 'boolean', (x: number) => Number.isFinite(x)),
  strictEntry('isInfinite', ['float'], 'boolean', (x: number) => Math.abs(x) === Infinity),
  strictEntry('ifNotFinite', ['float', 'float'], 'float', (x: number, y: number) =>
    Number.isFinite(x) ? x : y,
  ),
  strictEntry('toFloat', ['integer'], 'float', (x: bigint) => Number(x)),
  strictEntry('toInt', ['boolean'], 'integer', (x: boolean) => BigInt(x)),
  nullEntry('least', ['T', 'T'], 'T', extreme(-1)),
  nullEntry('greatest', ['T', 'T'], 'T', extreme(1)),
  nullEntry('isNull', ['T'], 'boolean', (x: Value) => x === null),
  nullEntry('isNotNull', ['T'], 'boolean', (x: Value) => x !== null),
];

import { type FunctionEntry, nullEntry, strictEntry } from './function_entry.ts';
import { arrayOf, typeOf } from './types.ts';
import { compare, identityOf, isSame, type Value } from './values.ts';

type List = readonly Value[];

const distinct = (list: List): List => [...new Map(list.map((item) => [identityOf(item), item])).values()];

/** Nulls come last in both directions. */
export const sorted = (list: List, sign: number): List =>
  [...list].sort((a, b) =>
    a === null || b === null ? Number(a === null) - Number(b === null) : compare(a, b) * sign,
  );

const includes = (list: List, value: Value): boolean => list.some((item) => isSame(item, value));

/** Items from an offset, counted from 1, or from the end if it is negative. */
function slice(list: List, offset: bigint, length?: bigint): List {
  if (offset === 0n) return [];
  const from = offset > 0n ? Number(offset) - 1 : list.length + Number(offset);
  const to = length === undefined ? list.length : from + Number(length);
  return list.slice(Math.max(from, 0), Math.max(to, 0));
}

const integers = arrayOf(typeOf('integer'));

/** Arrays. */
export const arrayFunctions: readonly FunctionEntry[] = [
  strictEntry('length', ['array(T)'], 'integer', (list: List) => BigInt(list.length)),
  strictEntry('empty', ['array(T)'], 'boolean', (list: List) => list.length === 0),
  strictEntry('notEmpty', ['array(T)'], 'boolean', (list: List) => list.length > 0),
  nullEntry('has', ['array(T)', 'T'], 'boolean', includes),
  nullEntry('indexOf', ['array(T)', 'T'], 'integer', (list: List, value: Value) =>
    BigInt(list.findIndex((item) => isSame(item, value)) + 1),
  ),
  nullEntry('countEqual', ['array(T)', 'T'], 'integer', (list: List, value: Value) =>
    BigInt(list.filter((item) => isSame(item, value)).length),
  ),
  strictEntry('hasAll', ['array(T)', 'array(T)'], 'boolean', (list: List, wanted: List) =>
    wanted.every((item) => includes(list, item)),
  ),
  strictEntry('hasAny', ['array(T)', 'array(T)'], 'boolean', (list: List, wanted: List) =>
    wanted.some((item) => includes(list, item)),
  ),
  strictEntry('arrayReverse', ['array(T)'], 'array(T)', (list: List) => [...list].reverse()),
  strictEntry('arraySort', ['array(T)'], 'array(T)', (list: List) => sorted(list, 1)),
  strictEntry('arrayReverseSort', ['array(T)'], 'array(T)', (list: List) => sorted(list, -1)),
  strictEntry('arrayUniq', ['array(T)'], 'integer', (list: List) => BigInt(distinct(list).length)),
  strictEntry('arrayConcat', ['array(T)', 'array(T)'], 'array(T)', (a: List, b: List) => [...a, ...b]),
  nullEntry('arrayPushBack', ['array(T)', 'T'], 'array(T)', (list: List, item: Value) => [...list, item]),
  nullEntry('arrayPushFront', ['array(T)', 'T'], 'array(T)', (list: List, item: Value) => [item, ...list]),
  strictEntry('arrayPopBack', ['array(T)'], 'array(T)', (list: List) => list.slice(0, -1)),
  strictEntry('arrayPopFront', ['array(T)'], 'array(T)', (list: List) => list.slice(1)),
  strictEntry('arraySlice', ['array(T)', 'small'], 'array(T)', slice),
  strictEntry('arraySlice', ['array(T)', 'integer', 'small'], 'array(T)', slice),
  strictEntry('arrayCompact', ['array(T)'], 'array(T)', (list: List) =>
    list.filter((item, index) => index === 0 || !isSame(item, list[index - 1] ?? null)),
  ),
  strictEntry('arrayEnumerate', ['array(T)'], integers, (list: List) =>
    list.map((_, index) => BigInt(index + 1)),
  ),
  strictEntry('range', ['small'], integers, (end: bigint) =>
    Array.from({ length: Math.max(0, Number(end)) }, (_, index) => BigInt(index)),
  ),
  strictEntry(
    'arrayStringConcat',
    ['array(string)', 'text'],
    'string',
    (list: readonly (string | null)[], separator: string) =>
      list.filter((item) => item !== null).join(separator),
  ),
];

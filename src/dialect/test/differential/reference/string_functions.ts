import { type FunctionEntry, localEntry, nullEntry, strictEntry } from './function_entry.ts';
import { datetimeText, parseDatetime } from './times.ts';
import { arrayOf, typeOf } from './types.ts';

const characters = (text: string): readonly string[] => Array.from(text);

/** Characters from an offset, counted from 1, or from the end if it is negative. */
function substring(text: string, offset: bigint, length?: bigint): string {
  const all = characters(text);
  if (offset === 0n) return '';
  let from = offset > 0n ? Number(offset) - 1 : all.length + Number(offset);
  let to = length === undefined ? all.length : from + Number(length);
  if (length !== undefined && length < 0n) to = all.length + Number(length);
  from = Math.max(from, 0);
  to = Math.min(to, all.length);
  return all.slice(from, Math.max(from, to)).join('');
}

/** The position of a string in characters, from 1; 0 if it does not occur. */
function position(text: string, wanted: string): bigint {
  const index = text.indexOf(wanted);
  return index < 0 ? 0n : BigInt(characters(text.slice(0, index)).length + 1);
}

const count = (text: string, wanted: string): bigint =>
  wanted === '' ? 0n : BigInt(text.split(wanted).length - 1);

const onString = (name: string, apply: (text: string) => string): FunctionEntry =>
  strictEntry(name, ['string'], 'string', apply);
const matches = (name: string, apply: (text: string, other: string) => boolean): FunctionEntry =>
  strictEntry(name, ['string', 'string'], 'boolean', apply);

const nullableInteger = typeOf('integer', true);
const nullableFloat = typeOf('float', true);

const integerOf = (text: string): bigint | null =>
  /^[-+]?\d{1,18}$/.test(text) ? BigInt(text.replace('+', '')) : null;
const floatOf = (text: string): number | null =>
  /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(text)
    ? Number(text)
    : /^nan$/i.test(text)
      ? NaN
      : /^[-+]?inf(inity)?$/i.test(text)
        ? text.startsWith('-')
          ? -Infinity
          : Infinity
        : null;

/** Strings and conversions. */
export const stringFunctions: readonly FunctionEntry[] = [
  strictEntry('length', ['string'], 'integer', (text: string) => BigInt(Buffer.byteLength(text))),
  strictEntry('lengthUTF8', ['string'], 'integer', (text: string) => BigInt(characters(text).length)),
  // Only ASCII letters, as in ClickHouse.
  onString('lower', (text) => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())),
  onString('upper', (text) => text.replaceAll(/[a-z]/g, (letter) => letter.toUpperCase())),
  onString('reverse', (text) => [...characters(text)].reverse().join('')),
  onString('trim', (text) => text.replaceAll(/^ +| +$/g, '')),
  onString('trimLeft', (text) => text.replace(/^ +/, '')),
  onString('trimRight', (text) => text.replace(/ +$/, '')),
  strictEntry('empty', ['string'], 'boolean', (text: string) => text === ''),
  strictEntry('notEmpty', ['string'], 'boolean', (text: string) => text !== ''),
  matches('startsWith', (text, other) => text.startsWith(other)),
  matches('endsWith', (text, other) => text.endsWith(other)),
  strictEntry('position', ['string', 'string'], 'integer', position),
  strictEntry('countSubstrings', ['string', 'string'], 'integer', count),
  strictEntry('repeat', ['string', 'small'], 'string', (text: string, times: bigint) =>
    text.repeat(Math.max(0, Number(times))),
  ),
  strictEntry('left', ['string', 'small'], 'string', (text: string, length: bigint) =>
    characters(text).slice(0, Number(length)).join(''),
  ),
  strictEntry('right', ['string', 'small'], 'string', (text: string, length: bigint) =>
    characters(text)
      .slice(characters(text).length - Math.min(Number(length), characters(text).length))
      .join(''),
  ),
  strictEntry('substring', ['string', 'integer'], 'string', substring),
  strictEntry('substring', ['string', 'integer', 'small'], 'string', substring),
  strictEntry(
    'replaceAll',
    ['string', 'string', 'string'],
    'string',
    (text: string, from: string, to: string) => (from === '' ? text : text.replaceAll(from, () => to)),
  ),
  strictEntry(
    'replaceOne',
    ['string', 'string', 'string'],
    'string',
    (text: string, from: string, to: string) => (from === '' ? text : text.replace(from, () => to)),
  ),
  nullEntry(
    'concat',
    ['string', 'string'],
    'string',
    (a: string | null, b: string | null) => (a ?? '') + (b ?? ''),
  ),
  nullEntry(
    'concat',
    ['string', 'integer', 'string'],
    'string',
    (a: string | null, b: bigint | null, c: string | null) => `${a ?? ''}${b ?? ''}${c ?? ''}`,
  ),
  strictEntry(
    'splitByString',
    ['string', 'string'],
    arrayOf(typeOf('string')),
    (separator: string, text: string) =>
      separator === '' ? [...characters(text)] : text === '' ? [''] : text.split(separator),
  ),
  strictEntry('toString', ['integer'], 'string', (value: bigint) => String(value)),
  strictEntry('toString', ['boolean'], 'string', (value: boolean) => String(value)),
  strictEntry('toString', ['date'], 'string', (date: string) => date),
  strictEntry('toString', ['uuid'], 'string', (id: string) => id),
  localEntry(
    'toString',
    ['datetime'],
    'string',
    ({ zone }) =>
      (moment: bigint) =>
        datetimeText(moment, zone),
  ),
  strictEntry('toInt', ['string'], nullableInteger, integerOf),
  strictEntry('toInt', ['float'], nullableInteger, (value: number) =>
    Number.isInteger(value) ? BigInt(value) : null,
  ),
  strictEntry('toFloat', ['string'], nullableFloat, floatOf),
  strictEntry('toIntOrZero', ['string'], 'integer', (text: string) => integerOf(text) ?? 0n),
  strictEntry('toFloatOrZero', ['string'], 'float', (text: string) => floatOf(text) ?? 0),
  // Evaluated by calls.ts, because the result is null only if the default is.
  ...(['', 'default'] as const).flatMap((given) => [
    nullEntry('toIntOrDefault', given === '' ? ['string'] : ['string', 'integer'], 'integer', integerOf),
    nullEntry('toFloatOrDefault', given === '' ? ['string'] : ['string', 'float'], 'float', floatOf),
  ]),
  localEntry(
    'toDateTime',
    ['string'],
    typeOf('datetime', true),
    ({ zone }) =>
      (text: string) =>
        parseDatetime(text, zone) ?? null,
  ),
  localEntry(
    'toDate',
    ['string'],
    typeOf('date', true),
    ({ zone }) =>
      (text: string) =>
        parseDatetime(text, zone) === undefined ? null : text.slice(0, 10),
  ),
];

import { stringifyJson } from '../../../client/client.ts';
import { csvRow, withoutFormula } from '../../../client/csv.ts';
import type { ResultTable } from '../../../client/result_table.ts';

/** What values of a type are: how they are aligned and drawn. */
export type ValueKind = 'number' | 'time' | 'text';

const withoutNull = (type: string): string => /^Nullable\((.*)\)$/.exec(type)?.[1] ?? type;

/** The kind of a ClickHouse type, such as `Nullable(Int64)`. */
export function valueKindOf(type: string): ValueKind {
  const inner = withoutNull(type);
  if (/^(Int|UInt|Float|Decimal)/.test(inner)) return 'number';
  return inner.startsWith('Date') ? 'time' : 'text';
}

/** The time zone that a type names: `DateTime64(6, 'UTC')`. */
export const zoneOfType = (type: string): string | undefined =>
  /^DateTime.*'(.+)'\)$/.exec(withoutNull(type))?.[1];

/** The text of a value in a file. Null is shown as such by the caller. */
export const textOfValue = (value: unknown): string =>
  typeof value === 'string' ? value : stringifyJson(value);

const isoTime = /^(\d{4,}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d*[1-9])?0*(?:\.0*)?(?:Z|[+-]\d\d:\d\d)$/;

/** A value as a person reads it in a cell: times without their offset, which the header names, and integers with separators. */
export function cellText(value: unknown, type: string): string {
  const text = textOfValue(value);
  const kind = valueKindOf(type);
  if (kind === 'time')
    return text.replace(isoTime, (_, day, clock, fraction = '') => `${day} ${clock}${fraction}`);
  const isLongInteger = kind === 'number' && /^-?\d{5,}$/.test(text) && /^U?Int/.test(withoutNull(type));
  return isLongInteger ? BigInt(text).toLocaleString('en') : text;
}

/** A value as a panel shows it: JSON with a line for each field, also JSON in a string. */
export function wholeText(value: unknown): string {
  if (typeof value !== 'string') return stringifyJson(value, 2);
  if (!/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

/** A result as CSV. Null is an empty field. Only numbers may begin as a formula does. */
export function csvOf({ columns, types, results }: ResultTable): string {
  const fieldOf = (value: unknown, isNumber: boolean): string => {
    if (value === null || value === undefined) return '';
    const text = textOfValue(value);
    return !isNumber && typeof value === 'string' ? withoutFormula(text) : text;
  };
  const isNumber = types.map(([, type]) => valueKindOf(type) === 'number');
  const lines = [
    columns.map((name) => fieldOf(name, false)),
    ...results.map((row) => row.map((value, column) => fieldOf(value, isNumber[column] ?? false))),
  ];
  return lines.map(csvRow).join('');
}

/** The rows sorted by a column: numbers by value, nulls last. */
export function sortedBy(
  { results, types }: Pick<ResultTable, 'results' | 'types'>,
  column: number,
  direction: 'ascending' | 'descending',
): ResultTable['results'] {
  const isNumber = valueKindOf(types[column]?.[1] ?? '') === 'number';
  const sign = direction === 'ascending' ? 1 : -1;
  return results.toSorted((one, other) => {
    const [left, right] = [one[column] ?? null, other[column] ?? null];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    const order = isNumber
      ? Number(left) - Number(right)
      : textOfValue(left).localeCompare(textOfValue(right), 'en');
    return sign * order;
  });
}

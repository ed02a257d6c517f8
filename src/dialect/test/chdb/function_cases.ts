import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A query with its expected value, recorded from ClickHouse or written manually. */
export interface FunctionCase {
  readonly function: string;
  readonly query: string;
  /** The kind of ClickHouse's result type; null if it is not compared. */
  readonly kind: string | null;
  readonly value: unknown;
}

interface Recorded {
  readonly function: string;
  readonly query: string;
  readonly type?: string;
  readonly value?: unknown;
  readonly error?: string;
}

interface ManualCase {
  readonly function: string;
  readonly query: string;
  readonly value?: unknown;
  /** Part of the error message. */
  readonly rejected?: string;
  readonly reason: string;
}

const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'));

const { cases: recorded } = read('functions.json') as { readonly cases: readonly Recorded[] };

/** Cases where the dialect differs from ClickHouse, or ClickHouse fails, each with the reason. */
const manualCases = read('functions_manual.json') as readonly ManualCase[];
const manualQueries = new Set(manualCases.map(({ query }) => query));

export const rejectedCases = manualCases.flatMap(({ query, rejected }) =>
  rejected === undefined ? [] : [{ query, rejected }],
);

export const functionCases: readonly FunctionCase[] = [
  ...recorded
    .filter(({ query }) => !manualQueries.has(query))
    .map((one) => ({ ...one, kind: kindOf(one.type ?? ''), value: one.value ?? null })),
  ...manualCases
    .filter(({ rejected }) => rejected === undefined)
    .map((one) => ({ ...one, kind: null, value: one.value ?? null })),
];

/** Cases that fail in ClickHouse and have no manual result. */
export const unresolvedCases = recorded.filter(
  ({ query, error }) => error !== undefined && !manualQueries.has(query),
);

/** The kind of a ClickHouse type, several of which map to one dialect type. */
function kindOf(type: string): string | null {
  const plain = type.replace(/^LowCardinality\((.*)\)$/, '$1').replace(/^Nullable\((.*)\)$/, '$1');
  if (/^(U?Int|Float|Decimal|Bool)/.test(plain)) return 'number';
  if (/^(String|FixedString|UUID)/.test(plain)) return 'text';
  if (plain.startsWith('DateTime')) return 'datetime';
  if (plain.startsWith('Date')) return 'date';
  const composite = /^(Array|Tuple|Map)\(/.exec(plain)?.[1];
  return composite?.toLowerCase() ?? null;
}

/** The same case with its arguments as columns, unknown at compile time; null if they are not plain values. */
export function withColumns(query: string): string | null {
  const call = /^select (\w+)\((.*)\)$/s.exec(query);
  const [, name, written] = call ?? [];
  if (name === undefined || written === undefined || /->|INTERVAL|\[\]|NULL/.test(written)) return null;
  const values = topLevel(written);
  if (values.length === 0) return null;
  const columns = values.map((value, index) => `${value} as p${index}`);
  return `select ${name}(${values.map((_, index) => `p${index}`).join(', ')}) from (select ${columns.join(', ')}) as given`;
}

/** Splits arguments at commas outside quotes and brackets. */
function topLevel(text: string): readonly string[] {
  const parts: string[] = [''];
  let depth = 0;
  for (const [token] of text.matchAll(/'(?:[^'\\]|\\.)*'|[\s\S]/g)) {
    if ('([{'.includes(token)) depth += 1;
    if (')]}'.includes(token)) depth -= 1;
    if (token === ',' && depth === 0) parts.push('');
    else parts.push((parts.pop() ?? '') + token);
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

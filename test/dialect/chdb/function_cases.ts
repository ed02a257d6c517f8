import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A query and what it has to give, by ClickHouse or by hand. */
export interface FunctionCase {
  readonly function: string;
  readonly query: string;
  /** The kind of type that ClickHouse gives; null where it is not compared. */
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

interface ByHand {
  readonly function: string;
  readonly query: string;
  readonly value?: unknown;
  /** Part of the sentence with which the dialect refuses it. */
  readonly refused?: string;
  readonly why: string;
}

const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'));

const { cases: recorded } = read('functions.json') as { readonly cases: readonly Recorded[] };

/** Where the dialect departs from ClickHouse, or ClickHouse has no answer; each says why. */
export const byHand = read('functions_by_hand.json') as readonly ByHand[];
const handMade = new Set(byHand.map(({ query }) => query));

export const refusedCases = byHand.flatMap(({ query, refused }) =>
  refused === undefined ? [] : [{ query, refused }],
);

export const functionCases: readonly FunctionCase[] = [
  ...recorded
    .filter(({ query }) => !handMade.has(query))
    .map((one) => ({ ...one, kind: kindOf(one.type ?? ''), value: one.value ?? null })),
  ...byHand
    .filter(({ refused }) => refused === undefined)
    .map((one) => ({ ...one, kind: null, value: one.value ?? null })),
];

/** Cases that ClickHouse refuses need an answer by hand. */
export const unanswered = recorded.filter(({ query, error }) => error !== undefined && !handMade.has(query));

/** The kind of a type of ClickHouse, which has many for one of the dialect's. */
function kindOf(type: string): string | null {
  const plain = type.replace(/^LowCardinality\((.*)\)$/, '$1').replace(/^Nullable\((.*)\)$/, '$1');
  if (/^(U?Int|Float|Decimal|Bool)/.test(plain)) return 'number';
  if (/^(String|FixedString|UUID)/.test(plain)) return 'text';
  if (plain.startsWith('DateTime')) return 'datetime';
  if (plain.startsWith('Date')) return 'date';
  const composite = /^(Array|Tuple|Map)\(/.exec(plain)?.[1];
  return composite?.toLowerCase() ?? null;
}

/** The same case with its arguments as columns, which the compiler cannot know; null where they are no plain values. */
export function ofColumns(query: string): string | null {
  const call = /^select (\w+)\((.*)\)$/s.exec(query);
  const [, name, written] = call ?? [];
  if (name === undefined || written === undefined || /->|INTERVAL|\[\]|NULL/.test(written)) return null;
  const values = topLevel(written);
  if (values.length === 0) return null;
  const columns = values.map((value, place) => `${value} as p${place}`);
  return `select ${name}(${values.map((_, place) => `p${place}`).join(', ')}) from (select ${columns.join(', ')}) as given`;
}

/** Arguments apart: at commas outside of quotes and brackets. */
function topLevel(text: string): readonly string[] {
  const parts: string[] = [''];
  let depth = 0;
  for (const [piece] of text.matchAll(/'(?:[^'\\]|\\.)*'|[\s\S]/g)) {
    if ('([{'.includes(piece)) depth += 1;
    if (')]}'.includes(piece)) depth -= 1;
    if (piece === ',' && depth === 0) parts.push('');
    else parts.push((parts.pop() ?? '') + piece);
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

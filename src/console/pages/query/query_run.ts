import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { stringifyJson } from '../../../client/client.ts';
import { csvRow, withoutFormula } from '../../../client/csv.ts';
import { api, type ExportdError, toFailure } from '../../api/client.ts';

/** What the query endpoint returns for a query in the dialect. */
export interface QueryResult {
  readonly results: readonly (readonly unknown[])[];
  readonly columns: readonly string[];
  /** Pairs of name and ClickHouse type. */
  readonly types: readonly (readonly [name: string, type: string])[];
  readonly hasMore: boolean;
}

/** What values of a type are: how they are aligned and drawn. */
type ValueKind = 'number' | 'time' | 'text';

/** The kind of a ClickHouse type, such as `Nullable(Int64)`. */
export function valueKindOf(type: string): ValueKind {
  const inner = /^Nullable\((.*)\)$/.exec(type)?.[1] ?? type;
  if (/^(Int|UInt|Float|Decimal)/.test(inner)) return 'number';
  return inner.startsWith('Date') ? 'time' : 'text';
}

/** The text of a value in a cell. Null is shown as such by the caller. */
export const textOfValue = (value: unknown): string =>
  typeof value === 'string' ? value : stringifyJson(value);

/** A result as CSV. Null is an empty field. Only numbers may begin as a formula does. */
export function csvOf({
  columns,
  types,
  results,
}: Pick<QueryResult, 'columns' | 'types' | 'results'>): string {
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
  { results, types }: Pick<QueryResult, 'results' | 'types'>,
  column: number,
  direction: 'ascending' | 'descending',
): QueryResult['results'] {
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

/** What a result can be drawn as. */
export type Chart =
  | {
      readonly kind: 'times';
      /** Seconds since 1970, ascending. */
      readonly times: readonly number[];
      readonly series: readonly { readonly label: string; readonly values: readonly (number | null)[] }[];
    }
  | {
      readonly kind: 'bars';
      readonly label: string;
      readonly bars: readonly { readonly name: string; readonly value: number }[];
    };

const maxBars = 50;
const maxSeries = 6;

/**
 * The chart of a result: numbers over its first column of times, else its first numbers by the first column. Null for a
 * result without numbers, or with a single column.
 */
export function chartOf({ results, types }: Pick<QueryResult, 'results' | 'types'>): Chart | null {
  const kinds = types.map(([, type]) => valueKindOf(type));
  const numbers = kinds.flatMap((kind, index) => (kind === 'number' ? [index] : []));
  const time = kinds.indexOf('time');
  const [first] = numbers;
  if (first === undefined || results.length < 2) return null;
  if (time >= 0) return timesOf(results, types, time, numbers.slice(0, maxSeries));
  const name = kinds.includes('text') ? kinds.indexOf('text') : numbers.find((index) => index !== first);
  if (name === undefined) return null;
  const bars = results.slice(0, maxBars).map((row) => ({
    name: row[name] === null ? 'null' : textOfValue(row[name]),
    value: numberOf(row[first]) ?? 0,
  }));
  return { kind: 'bars', label: types[first]?.[0] ?? '', bars };
}

/** Rows of the same time, as of several groups, cannot be told apart by one line: only distinct times are drawn. */
function timesOf(
  results: QueryResult['results'],
  types: QueryResult['types'],
  time: number,
  numbers: readonly number[],
): Chart | null {
  const rows = results
    .map((row) => ({ row, at: Date.parse(textOfValue(row[time])) / 1_000 }))
    .filter(({ at }) => Number.isFinite(at))
    .sort((one, other) => one.at - other.at);
  const times = rows.map(({ at }) => at);
  if (times.length < 2 || new Set(times).size < times.length) return null;
  const series = numbers.map((index) => ({
    label: types[index]?.[0] ?? '',
    values: rows.map(({ row }) => numberOf(row[index])),
  }));
  return { kind: 'times', times, series };
}

/** Also of an ExactNumber, as the nearest number. */
function numberOf(value: unknown): number | null {
  if (value === null || value === undefined || value === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** The last run of the query, or the current one. */
export type QueryState =
  | { readonly status: 'idle' }
  | { readonly status: 'running'; readonly startedAt: number }
  | { readonly status: 'cancelled'; readonly elapsedMs: number }
  | {
      readonly status: 'failed';
      readonly elapsedMs: number;
      readonly failure: ExportdError;
      readonly query: string;
    }
  | {
      readonly status: 'completed';
      readonly elapsedMs: number;
      readonly result: QueryResult;
      readonly query: string;
    };

/** Runs queries, one at a time. */
interface QueryRun {
  readonly state: QueryState;
  readonly run: (query: string) => Promise<void>;
  /** Cancels the running query in the database. */
  readonly cancel: () => Promise<void>;
}

/** Runs queries of a page, and cancels the running one when the page is left. */
export function useQueryRun(): QueryRun {
  const state = useSignal<QueryState>({ status: 'idle' });
  const current = useRef<{ readonly id: string; isCancelled: boolean }>(undefined);

  const run = async (query: string) => {
    if (current.current) return;
    const running = { id: randomId(), isCancelled: false };
    current.current = running;
    const startedAt = Date.now();
    const elapsed = () => ({ elapsedMs: Date.now() - startedAt });
    state.value = { status: 'running', startedAt };
    try {
      const result = await api.post<QueryResult>('query/', {
        query: { kind: 'DialectQuery', query },
        // The rows as they are now, not those of a cached result.
        refresh: 'force_blocking',
        client_query_id: running.id,
      });
      state.value = { status: 'completed', ...elapsed(), result, query };
    } catch (error) {
      state.value = running.isCancelled
        ? { status: 'cancelled', ...elapsed() }
        : { status: 'failed', ...elapsed(), failure: toFailure(error), query };
    } finally {
      current.current = undefined;
    }
  };
  const cancel = async () => {
    const running = current.current;
    if (!running) return;
    running.isCancelled = true;
    // A query that has just ended is not found.
    await api.delete(`query/${running.id}/`).catch(() => undefined);
  };
  useEffect(() => () => void cancel(), []);
  return { state: state.value, run, cancel };
}

/** Browsers offer randomUUID to https and localhost alone. */
const randomId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  );

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { type ResultTable, toResultTable, type TabularResponse } from '../../../client/result_table.ts';
import { api, type ExportdError, toFailure } from '../../api/client.ts';

/** A query as the endpoint takes it. */
export type AnyQuery = Readonly<Record<string, unknown>> & { readonly kind: string };

/** What the page shows of a response. */
export interface QueryResult extends ResultTable {
  readonly hasMore: boolean;
  /** What the server says about it. */
  readonly notice: string | null;
  /** Whether its times are stacked bars unless a person chooses lines. */
  readonly isBars: boolean;
}

type QueryResponse = TabularResponse & { readonly hasMore?: boolean; readonly notice?: string | null };

/** The display of a trend that has bars over time. */
const barDisplays: ReadonlySet<unknown> = new Set(['ActionsBar', 'ActionsStackedBar', 'ActionsUnstackedBar']);

const displayOf = ({ trendsFilter }: AnyQuery): unknown =>
  typeof trendsFilter === 'object' && trendsFilter !== null && 'display' in trendsFilter
    ? trendsFilter.display
    : undefined;

/** The last run of the query, or the current one. */
export type QueryState =
  | { readonly status: 'idle' }
  | { readonly status: 'running'; readonly startedAt: number }
  | { readonly status: 'cancelled'; readonly elapsedMs: number }
  | {
      readonly status: 'failed';
      readonly elapsedMs: number;
      readonly failure: ExportdError;
      readonly query: AnyQuery;
    }
  | {
      readonly status: 'completed';
      readonly elapsedMs: number;
      readonly result: QueryResult;
      readonly query: AnyQuery;
    };

/** Runs queries, one at a time. */
interface QueryRun {
  readonly state: QueryState;
  readonly run: (query: AnyQuery) => Promise<void>;
  /** Cancels the running query in the database. */
  readonly cancel: () => Promise<void>;
}

/** Runs queries of a page, and cancels the running one when the page is left. */
export function useQueryRun(): QueryRun {
  const state = useSignal<QueryState>({ status: 'idle' });
  const current = useRef<{ readonly id: string; isCancelled: boolean }>(undefined);

  const run = async (query: AnyQuery) => {
    if (current.current) return;
    const running = { id: randomId(), isCancelled: false };
    current.current = running;
    const startedAt = Date.now();
    const elapsed = () => ({ elapsedMs: Date.now() - startedAt });
    state.value = { status: 'running', startedAt };
    try {
      const response = await api.post<QueryResponse>('query/', {
        query,
        // The rows as they are now, not those of a cached result.
        refresh: 'force_blocking',
        client_query_id: running.id,
      });
      const { hasMore = false, notice = null } = response;
      const isBars = barDisplays.has(displayOf(query));
      const result = { ...toResultTable(response), hasMore, notice, isBars };
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

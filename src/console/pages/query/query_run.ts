import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { toFailure, type ApiFailure } from '../../api/api_failure.ts';
import { api } from '../../api/client.ts';
import type { QueryResult } from './query_result.ts';

/** The last run of the query, or the current one. */
export type QueryState =
  | { readonly status: 'idle' }
  | { readonly status: 'running'; readonly startedAt: number }
  | { readonly status: 'cancelled'; readonly elapsedMs: number }
  | {
      readonly status: 'failed';
      readonly elapsedMs: number;
      readonly failure: ApiFailure;
      readonly query: string;
    }
  | { readonly status: 'completed'; readonly elapsedMs: number; readonly result: QueryResult };

/** Runs queries, one at a time. */
export interface QueryRun {
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
      state.value = { status: 'completed', ...elapsed(), result };
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

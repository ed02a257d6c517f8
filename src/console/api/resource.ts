import { useSignal, type ReadonlySignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { api, apiPath, type Query } from './client.ts';
import { toFailure, type ApiFailure } from './api_failure.ts';
import { concerns, isLive, onChange } from './live.ts';

/** What is known of a resource. `data` stays while it is read again, also when that fails. */
export interface Resource<Data> {
  readonly data: Data | undefined;
  readonly failure: ApiFailure | undefined;
  /** Whether nothing was read yet. */
  readonly isLoading: boolean;
  readonly reload: () => Promise<void>;
}

interface ResourceOptions {
  readonly query?: Query;
  /** Reads again when the export with this id changes, or any export if it is `all`. */
  readonly live?: string;
  /** Keeps what was read of the former path or query until the new one is read. */
  readonly keepsData?: boolean;
}

/** The least time between two reads that changes cause. */
const minReloadMs = 1_000;
/** How often resources with `live` are read while the server sends no changes. */
const pollMs = 10_000;

/**
 * Reads a resource of the API and reads it again when its path, its query or, with `live`, its export changes. A null path
 * reads nothing yet.
 */
export function useResource<Data>(
  path: string | null,
  { query = {}, live, keepsData = false }: ResourceOptions = {},
): Resource<Data> {
  const url = path === null ? null : apiPath(path, query);
  const state = useSignal<Pick<Resource<Data>, 'data' | 'failure'> & { url: string | null }>({
    url: null,
    data: undefined,
    failure: undefined,
  });
  const reading = useRef<AbortController>(undefined);

  const reload = useCallback(async () => {
    if (url === null) return;
    reading.current?.abort();
    const current = new AbortController();
    reading.current = current;
    try {
      const data = await api.get<Data>(url, {}, current.signal);
      state.value = { url, data, failure: undefined };
    } catch (error) {
      if (current.signal.aborted) return;
      const data = keepsData || state.peek().url === url ? state.peek().data : undefined;
      state.value = { url, data, failure: toFailure(error) };
    }
  }, [url, state, keepsData]);

  useEffect(() => {
    void reload();
    return () => reading.current?.abort();
  }, [reload]);

  useEffect(() => (live === undefined ? undefined : reloadOnChange(live, reload, isLive)), [live, reload]);

  const isCurrent = state.value.url === url;
  return {
    data: isCurrent || keepsData ? state.value.data : undefined,
    failure: isCurrent ? state.value.failure : undefined,
    isLoading: !isCurrent,
    reload,
  };
}

/** Reloads at most once per `minReloadMs`, and never before the last reload has ended. */
function reloadOnChange(
  live: string,
  reload: () => Promise<void>,
  isConnected: ReadonlySignal<boolean>,
): () => void {
  let timer: number | undefined;
  let isStopped = false;
  const schedule = () => {
    timer ??= window.setTimeout(() => {
      void reload().finally(() => {
        timer = undefined;
      });
    }, minReloadMs);
  };
  const stopListening = onChange((change) => {
    if (!isStopped && concerns(change, live)) schedule();
  });
  const poll = window.setInterval(() => {
    if (!isConnected.peek() && !document.hidden) schedule();
  }, pollMs);
  return () => {
    isStopped = true;
    stopListening();
    window.clearInterval(poll);
    window.clearTimeout(timer);
  };
}

import { effect, type ReadonlySignal, signal, useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { api, type ExportdError, apiPath, projectId, type Query, readSession, toFailure } from './client.ts';

/** What a message of the server says: the exports and runs whose events were recorded since the last one. */
interface LiveChange {
  readonly batch_export_ids: readonly string[];
  readonly run_ids: readonly string[];
  readonly backfill_ids: readonly string[];
}

/** Until a rejected connection is tried again, in milliseconds. Pages poll meanwhile. */
const retryMs = 15_000;

type Listener = (change: LiveChange) => void;

const listeners = new Set<Listener>();

/** Whether changes arrive. Pages poll meanwhile if they do not. */
export const isLive = signal(false);

/** Calls `listener` with each change in the project; returns how to stop. */
export function onChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Listens to the server while somebody is signed in and the tab is visible: a browser has six connections to a host, which
 * hidden tabs would hold. Connects again after a lost and after a rejected connection. Call it once.
 */
export function listenToChanges(): void {
  const isVisible = signal(!document.hidden);
  document.addEventListener('visibilitychange', () => {
    isVisible.value = !document.hidden;
  });
  let mayHaveMissed = false;
  const rejections = signal(0);
  effect(() => {
    if (projectId.value === undefined || !isVisible.value) {
      mayHaveMissed = true;
      return undefined;
    }
    const rejected = rejections.value;
    let retry: ReturnType<typeof setTimeout> | undefined;
    const source = new EventSource(apiPath('console/live/'));
    source.addEventListener('open', () => {
      isLive.value = true;
      // What changed while the tab was hidden or the connection lost is not sent again.
      if (mayHaveMissed) notify({ batch_export_ids: [], run_ids: [], backfill_ids: [] });
      mayHaveMissed = true;
    });
    source.addEventListener('error', () => {
      isLive.value = false;
      mayHaveMissed = true;
      // A browser does not reconnect after a response such as 401, or 503 of a server that is being replaced.
      if (source.readyState !== EventSource.CLOSED) return;
      retry = setTimeout(() => (rejections.value = rejected + 1), retryMs);
      // Signed out elsewhere: shows the sign-in page. A server that does not respond is asked again by the retry.
      void readSession().catch(() => undefined);
    });
    source.addEventListener('changed', (event: MessageEvent<string>) => {
      notify(JSON.parse(event.data) as LiveChange);
    });
    return () => {
      clearTimeout(retry);
      source.close();
      isLive.value = false;
    };
  });
}

/** Whether a change is one of this export, or of `all`. One without ids may have been missed: everything is read again. */
const concerns = (change: LiveChange, batchExportId: string): boolean =>
  batchExportId === 'all' ||
  change.batch_export_ids.length === 0 ||
  change.batch_export_ids.includes(batchExportId);

function notify(change: LiveChange): void {
  for (const listener of listeners) listener(change);
}

/** What is known of a resource. `data` stays while it is read again, also when that fails. */
export interface Resource<Data> {
  readonly data: Data | undefined;
  readonly failure: ExportdError | undefined;
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

/** A request that a person sends. */
interface SentRequest<Data> {
  readonly isBusy: boolean;
  /** What the last one returned, unless the newest has failed. */
  readonly data: Data | undefined;
  readonly failure: ExportdError | undefined;
  readonly run: () => Promise<void>;
}

/** Sends a request whenever `run` is called, and keeps what it returned or how it failed. */
export function useRequest<Data>(request: () => Promise<Data>): SentRequest<Data> {
  const state = useSignal<Omit<SentRequest<Data>, 'run'>>({
    isBusy: false,
    data: undefined,
    failure: undefined,
  });
  const run = async () => {
    state.value = { ...state.peek(), isBusy: true, failure: undefined };
    try {
      state.value = { isBusy: false, data: await request(), failure: undefined };
    } catch (error) {
      state.value = { isBusy: false, data: undefined, failure: toFailure(error) };
    }
  };
  return { ...state.value, run };
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

import { useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { api, type ExportdError, apiPath, type Query, toFailure } from './client.ts';

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
  /** Whether it is read again every few seconds while the tab is visible. */
  readonly polls?: boolean;
  /** Keeps what was read of the former path or query until the new one is read. */
  readonly keepsData?: boolean;
}

/** How often resources with `polls` are read. */
const pollMs = 5_000;

/**
 * Reads a resource of the API and reads it again when its path or its query changes and, with `polls`, every few seconds. A
 * null path reads nothing yet.
 */
export function useResource<Data>(
  path: string | null,
  { query = {}, polls = false, keepsData = false }: ResourceOptions = {},
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
    } finally {
      if (reading.current === current) reading.current = undefined;
    }
  }, [url, state, keepsData]);

  useEffect(() => {
    void reload();
    return () => reading.current?.abort();
  }, [reload]);

  useEffect(() => {
    if (!polls) return undefined;
    return pollWhileVisible(() => {
      // A slow read is not started again.
      if (!reading.current) void reload();
    });
  }, [polls, reload]);

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

/** Calls `poll` every few seconds while the tab is visible, and when it becomes visible. @returns how to stop */
export function pollWhileVisible(poll: () => void): () => void {
  const pollIfVisible = () => {
    if (!document.hidden) poll();
  };
  const timer = setInterval(pollIfVisible, pollMs);
  document.addEventListener('visibilitychange', pollIfVisible);
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', pollIfVisible);
  };
}

import { effect, signal } from '@preact/signals';
import { apiPath } from './client.ts';
import { session } from './session.ts';

/** What a message of the server says: the exports and runs whose events were recorded since the last one. */
export interface LiveChange {
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
    if (!session.value || !isVisible.value) {
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
      // A browser does not reconnect after a response such as 503, of a server that is being replaced.
      if (source.readyState === EventSource.CLOSED)
        retry = setTimeout(() => (rejections.value = rejected + 1), retryMs);
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
export const concerns = (change: LiveChange, batchExportId: string): boolean =>
  batchExportId === 'all' ||
  change.batch_export_ids.length === 0 ||
  change.batch_export_ids.includes(batchExportId);

function notify(change: LiveChange): void {
  for (const listener of listeners) listener(change);
}

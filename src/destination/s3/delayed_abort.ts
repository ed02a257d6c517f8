/** A signal that follows another one after a delay, and what stops its timer. */
export interface DelayedAbort extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * Returns a signal that is aborted `delayMs` milliseconds after `signal`, with its reason; at once when `signal` is
 * aborted already. It lets a request end whose response tells what the server created.
 */
export function delayAbort(signal: AbortSignal, delayMs: number): DelayedAbort {
  const delayed = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const abort = (): void => {
    delayed.abort(signal.reason);
  };
  const startTimer = (): void => {
    timer = setTimeout(abort, delayMs);
  };
  if (signal.aborted) abort();
  else signal.addEventListener('abort', startTimer, { once: true });
  return {
    signal: delayed.signal,
    [Symbol.dispose]: () => {
      signal.removeEventListener('abort', startTimer);
      clearTimeout(timer);
    },
  };
}

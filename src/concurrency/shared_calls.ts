import { setTimeout as delay } from 'node:timers/promises';
import { untilAborted } from './until_aborted.ts';

/** Calls by key, each with an answer that was found after it was made. */
interface SharedCalls<Result> {
  /**
   * Calls `work`, or waits for the call of another that begins after this one: while the work of a key is under way, all that come
   * share the next. It has no signal, since it belongs to all callers.
   * @throws what the work throws, and the signal's reason when it is aborted
   */
  readonly call: (key: string, signal: AbortSignal, work: () => Promise<Result>) => Promise<Result>;
}

interface UnderWay<Result> {
  readonly ended: Promise<unknown>;
  next: Promise<Result> | undefined;
}

/** After this time, in milliseconds, the next call begins beside one that has not ended: that one may never answer. */
const defaultMaxWaitMs = 1_000;

/** Lets calls at the same time share work that answers all of them, such as a list of what a server does now. */
export function createSharedCalls<Result>(maxWaitMs = defaultMaxWaitMs): SharedCalls<Result> {
  const underWay = new Map<string, UnderWay<Result>>();
  const begin = (key: string, work: () => Promise<Result>): Promise<Result> => {
    const result = work();
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    const call: UnderWay<Result> = { ended, next: undefined };
    underWay.set(key, call);
    void ended.then(() => {
      if (underWay.get(key) === call && !call.next) underWay.delete(key);
    });
    return result;
  };
  const join = (key: string, work: () => Promise<Result>): Promise<Result> => {
    const current = underWay.get(key);
    if (!current) return begin(key, work);
    const waited = async (): Promise<Result> => {
      const waiting = new AbortController();
      await Promise.race([
        current.ended,
        delay(maxWaitMs, undefined, { signal: waiting.signal }).catch(() => undefined),
      ]);
      waiting.abort();
      return begin(key, work);
    };
    return (current.next ??= waited());
  };
  return {
    call: async (key, signal, work) => {
      signal.throwIfAborted();
      return untilAborted(join(key, work), signal);
    },
  };
}

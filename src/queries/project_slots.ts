import type { SlotLimits } from './slot_limits.ts';

/** Who a query runs for. */
export interface SlotOwner {
  readonly team_id: number;
  /** The API key of the request; null in the background. */
  readonly key_id: string | null;
}

/** A query that waits for a slot. */
export interface SlotWaiter {
  readonly owner: SlotOwner;
  readonly grant: () => void;
  readonly reject: (error: Error) => void;
  /** Called when slots are free, but none for this query. */
  readonly limited: () => void;
}

/** The slots that a project uses, and its queue. */
export interface ProjectSlots {
  readonly running: number;
  readonly waiting: ReadonlySet<SlotWaiter>;
  /** Milliseconds that its queries have used slots, of which half is forgotten every minute. */
  usedMs(): number;
  add(waiter: SlotWaiter): void;
  /** @returns whether it waited */
  remove(waiter: SlotWaiter): boolean;
  /** The oldest query of the key that runs the fewest; undefined if the limits of the project and its keys allow none. */
  next(): SlotWaiter | undefined;
  /** The newest query of the key that has the most in the queue. */
  newestOfLongest(): SlotWaiter | undefined;
  /** The limit that another query of this key would exceed. */
  exceeded(keyId: string | null): 'key' | 'project' | undefined;
  start(keyId: string | null): void;
  end(keyId: string | null, durationMs: number): void;
  /** Whether it can be forgotten. */
  isIdle(): boolean;
}

const halfLifeMs = 60_000;
/** A use of slots that no longer matters. */
const forgottenMs = 1;

/** @param now a clock in milliseconds */
export function createProjectSlots(
  { projectSlots, keySlots }: Pick<SlotLimits, 'projectSlots' | 'keySlots'>,
  now: () => number,
): ProjectSlots {
  const runningByKey = new Map<string | null, number>();
  const waiting = new Set<SlotWaiter>();
  let running = 0;
  let used = 0;
  let usedAt = now();

  const runningOf = (keyId: string | null): number => runningByKey.get(keyId) ?? 0;
  const usedMs = (): number => used * 0.5 ** ((now() - usedAt) / halfLifeMs);
  const exceeded: ProjectSlots['exceeded'] = (keyId) => {
    if (running >= projectSlots) return 'project';
    return runningOf(keyId) >= keySlots ? 'key' : undefined;
  };

  return {
    get running() {
      return running;
    },
    waiting,
    usedMs,
    exceeded,
    add: (waiter) => {
      waiting.add(waiter);
    },
    remove: (waiter) => waiting.delete(waiter),
    next: () =>
      // The sort is stable, so the oldest comes first.
      [...waiting]
        .filter(({ owner }) => exceeded(owner.key_id) === undefined)
        .sort((one, other) => runningOf(one.owner.key_id) - runningOf(other.owner.key_id))[0],
    newestOfLongest: () => {
      const byKey = Map.groupBy(waiting, ({ owner }) => owner.key_id);
      const [longest] = [...byKey.values()].sort((one, other) => other.length - one.length);
      return longest?.at(-1);
    },
    start: (keyId) => {
      running += 1;
      runningByKey.set(keyId, runningOf(keyId) + 1);
    },
    end: (keyId, durationMs) => {
      running -= 1;
      if (runningOf(keyId) === 1) runningByKey.delete(keyId);
      else runningByKey.set(keyId, runningOf(keyId) - 1);
      used = usedMs() + durationMs;
      usedAt = now();
    },
    isIdle: () => running === 0 && waiting.size === 0 && usedMs() < forgottenMs,
  };
}

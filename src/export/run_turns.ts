import { createKeyedSemaphore } from '../concurrency/keyed_semaphore.ts';

/** What the order of a run follows from. A run that was started by hand may have none of it. */
export interface RunOrder {
  /** The project, as Temporal's fairness key; empty without one. */
  readonly project: string;
  /** Temporal's priority key of its workflow. */
  readonly priority?: number | undefined;
  readonly data_interval_end?: string | undefined;
}

/** The turns of the runs that a worker checks, counts, and completes if they are small. */
export interface RunTurns {
  /**
   * Waits for the turn of a run.
   * @returns a function that ends the turn, once; undefined if it does not come in time
   * @throws the reason of the signal
   */
  wait(run: RunOrder, signal: AbortSignal): Promise<(() => void) | undefined>;
  /** Whether a run has lately waited in vain: more of them wait than the worker can serve. */
  areTaken(): boolean;
}

/**
 * Runs that have their turn at a time, and how long one waits for it within its workflow task, in milliseconds. More at a time
 * would make all of them slow, and slow ones are no local activities.
 */
const turnLimits = { atOnce: 16, waitMs: 6_000 };

/** Runs that wait ask again within this time, in milliseconds, also while Temporal is slow. */
const askedAgainMs = 10_000;

/** Temporal's priority of what was started without one. */
const defaultPriority = 3;
/** After the end of every interval. */
const endOfTime = Date.UTC(9999, 11, 31);

/** Priority, then end of the interval. It stays the same, so that a run that asks again has lost no place. */
const rankOf = ({ priority = defaultPriority, data_interval_end = '' }: RunOrder): number =>
  priority * endOfTime + (Date.parse(data_interval_end) || 0);

/**
 * Projects share the turns. Within a project schedules come before backfills, then older intervals before newer ones, of all its
 * exports. A run that waited in vain leaves its workflow task to others: newer ones may overtake it until it asks again.
 * @param now a clock in milliseconds, for tests
 */
export function createRunTurns({ atOnce, waitMs } = turnLimits, now = () => performance.now()): RunTurns {
  const turns = createKeyedSemaphore<string>({ total: atOnce, keepsLast: true });
  const notInTime = new Error('Other runs of the worker have their turn.');
  let inVainAt = -Infinity;
  return {
    wait: (run, signal) =>
      turns
        .acquire(run.project, {
          rank: rankOf(run),
          signal,
          timeout: { ms: waitMs, error: () => notInTime },
        })
        .catch((error: unknown) => {
          if (error !== notInTime) throw error;
          inVainAt = now();
          return undefined;
        }),
    areTaken: () => now() - inVainAt < askedAgainMs,
  };
}

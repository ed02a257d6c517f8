import { forEachConcurrently } from '../../concurrency/keyed_semaphore.ts';
import { isInvalidRequest, isTemporalError } from '../../failures/grpc_errors.ts';
import { isDatabaseUnavailable } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';

/** What one pass of a reconciler did. */
interface PassCounts {
  /** Executions that the control database expects. */
  expected: number;
  /** Executions that were described: suspects, and a sample of the others. */
  described: number;
  /** Described executions whose workflow task keeps failing. */
  stuck: number;
  /** Items that were started, restarted, cancelled, signalled or recorded. */
  repaired: number;
  /** Items that could not be decided or repaired. */
  failed: number;
  /** Items that the pass had no time for. */
  deferred: number;
  /** Requests to Temporal. */
  requests: number;
}

/** All counts, which statistics sum. */
const countNames = ['expected', 'described', 'stuck', 'repaired', 'failed', 'deferred', 'requests'] as const;
const noCounts = { expected: 0, described: 0, stuck: 0, repaired: 0, failed: 0, deferred: 0, requests: 0 };

/** What a reconciler remembers from one pass to the next, so that every item gets its turn. */
export interface PassMemory {
  /** The last item of a pass that ended early. */
  resumeAfter?: string | undefined;
  /** The last item of the latest sample. */
  sampledUntil?: string | undefined;
}

/** One pass of a reconciler. */
export interface Pass {
  readonly counts: PassCounts;
  /** Aborted when the process stops. */
  readonly signal: AbortSignal;
  /** Whether the time of the pass is used up, or the process stops. */
  isOver(): boolean;
  /**
   * Calls `repair` for every item; it returns whether it changed anything. An item that fails is logged and keeps no
   * other from its turn. A pass that ends early is continued by the next one after its last item.
   * @throws the last error, if Temporal or the database did not serve several items in a row
   */
  forEachItem<Item>(
    items: readonly Item[],
    keyOf: (item: Item) => string,
    repair: (item: Item) => Promise<boolean>,
  ): Promise<void>;
  /** Chooses `count` of the items; others in each pass, until all had their turn. */
  sample<Item>(items: readonly Item[], keyOf: (item: Item) => string, count: number): Item[];
  /** Counts and logs an item that cannot be decided or repaired. */
  reportFailure(key: string, error: unknown): void;
}

/** Concurrent requests to Temporal; few, so that a pass does not slow down the workflows. */
const maxConcurrentRequests = 8;

/** After so many items in a row that were not served, the service is down, and all others would fail alike. */
const maxUnservedItems = 10;

/** Log lines of one pass about items that failed. */
const maxLoggedFailures = 10;

/** Starts a pass. `endsAt` is its time budget, in milliseconds of `performance.now()`. */
export function createPass({
  name,
  memory,
  endsAt,
  signal,
  logger,
}: {
  readonly name: string;
  readonly memory: PassMemory;
  readonly endsAt: number;
  readonly signal: AbortSignal;
  readonly logger: Logger;
}): Pass {
  const counts = { ...noCounts };
  const isOver = (): boolean => signal.aborted || performance.now() > endsAt;
  const reportFailure = (key: string, error: unknown): void => {
    counts.failed += 1;
    if (counts.failed <= maxLoggedFailures)
      logger.error({ err: error, reconciler: name, item: key }, 'The reconciler could not repair an item.');
  };
  return {
    counts,
    signal,
    isOver,
    reportFailure,
    sample: (items, keyOf, count) => {
      const sample = inTurn(items, keyOf, memory.sampledUntil).slice(0, count);
      const last = sample.at(-1);
      if (last !== undefined) memory.sampledUntil = keyOf(last);
      return sample;
    },
    forEachItem: async (items, keyOf, repair) => {
      const ordered = inTurn(items, keyOf, memory.resumeAfter);
      let unserved = 0;
      await forEachConcurrently(ordered, maxConcurrentRequests, async (item) => {
        if (isOver()) {
          counts.deferred += 1;
          return;
        }
        memory.resumeAfter = keyOf(item);
        try {
          if (await repair(item)) counts.repaired += 1;
          unserved = 0;
        } catch (error) {
          reportFailure(keyOf(item), error);
          if (!isUnserved(error)) return;
          unserved += 1;
          if (unserved >= maxUnservedItems) throw error;
        }
      });
      if (counts.deferred === 0) memory.resumeAfter = undefined;
    },
  };
}

/** Sorts the items by key, beginning after `last`. */
function inTurn<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  last: string | undefined,
): Item[] {
  const sorted = items.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  if (last === undefined) return sorted;
  const next = sorted.findIndex((item) => keyOf(item) > last);
  return next < 0 ? sorted : [...sorted.slice(next), ...sorted.slice(0, next)];
}

/** Whether an error says that a service is not available, and not that it rejects this item. */
const isUnserved = (error: unknown): boolean =>
  (isTemporalError(error) && !isInvalidRequest(error)) || isDatabaseUnavailable(error);

/** What one pass did, and how it ended. */
export interface PassResult extends PassCounts {
  /** ISO 8601. */
  readonly started_at: string;
  readonly seconds: number;
  readonly outcome: 'completed' | 'out_of_time' | 'failed';
}

/** What a reconciler has done since its process started. */
export interface ReconcilerStatistics {
  readonly name: string;
  readonly passes: Readonly<Record<PassResult['outcome'], number>>;
  /** Sums over all passes. */
  readonly totals: Readonly<PassCounts & { seconds: number }>;
  /** Null before the first pass, and in a process that does not hold the reconcilers' lock. */
  readonly last_pass: PassResult | null;
}

/** Sums the passes of a reconciler. */
interface StatisticsCollector {
  add(pass: PassResult): void;
  read(): ReconcilerStatistics;
}

/** Creates the collector of a reconciler. */
export function createStatisticsCollector(name: string): StatisticsCollector {
  const passes = { completed: 0, out_of_time: 0, failed: 0 };
  const totals = { ...noCounts, seconds: 0 };
  let last: PassResult | null = null;
  return {
    add: (pass) => {
      passes[pass.outcome] += 1;
      totals.seconds += pass.seconds;
      for (const count of countNames) totals[count] += pass[count];
      last = pass;
    },
    read: () => ({ name, passes: { ...passes }, totals: { ...totals }, last_pass: last }),
  };
}

import type { PassCounts } from './pass.ts';

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
export interface StatisticsCollector {
  add(pass: PassResult): void;
  read(): ReconcilerStatistics;
}

const summed = ['expected', 'described', 'stuck', 'repaired', 'failed', 'deferred', 'requests'] as const;

/** Creates the collector of a reconciler. */
export function createStatisticsCollector(name: string): StatisticsCollector {
  const passes = { completed: 0, out_of_time: 0, failed: 0 };
  const totals = {
    expected: 0,
    described: 0,
    stuck: 0,
    repaired: 0,
    failed: 0,
    deferred: 0,
    requests: 0,
    seconds: 0,
  };
  let last: PassResult | null = null;
  return {
    add: (pass) => {
      passes[pass.outcome] += 1;
      totals.seconds += pass.seconds;
      for (const count of summed) totals[count] += pass[count];
      last = pass;
    },
    read: () => ({ name, passes: { ...passes }, totals: { ...totals }, last_pass: last }),
  };
}

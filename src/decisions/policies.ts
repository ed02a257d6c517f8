import { createHash } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import type { ComparisonSchedule } from '../domain/comparison.ts';
import { type DataInterval, nominalLengthMs } from '../domain/intervals.ts';
import type { ConfigRule } from './config_rule.ts';
import type { RetryPolicy } from '../domain/retry_delay.ts';

/** When obsolete objects are deleted and exported intervals are compared with the source. */
export interface MaintenancePolicy {
  /** Milliseconds that objects are kept after a newer generation replaced them in the manifest. */
  readonly oldGenerationRetentionMs: number;
  /** Milliseconds that files are kept after their target, such as a table, no longer lists them. */
  readonly targetFileRetentionMs: number;
  /** Milliseconds that orphaned objects are kept, to which no manifest can refer. */
  readonly orphanRetentionMs: number;
  /** Milliseconds after which an object that cannot be deleted stays permanently. */
  readonly orphanRetryBudgetMs: number;
  /** When exported intervals are compared with the source. */
  readonly comparisons: ComparisonSchedule;
  /** Rows of the source that comparisons read per second. */
  readonly comparisonRowsPerSecond: number;
}

/** The settings that decisions depend on, and the rules of optional capabilities. */
export interface Policies {
  readonly maxConcurrentRuns: number;
  readonly backfillConcurrency: number;
  /** Concurrent runs of the repair of an export. */
  readonly repairConcurrency: number;
  readonly maxBackfillIntervals: number;
  readonly maxBackfillsPerProject: number;
  readonly retry: RetryPolicy;
  /** The number of consecutive Failed runs that pauses an export or a backfill; 0 to never pause. */
  readonly pauseAfterFailures: number;
  readonly maintenance: MaintenancePolicy;
  /** What a config must satisfy to be saved, besides what all exports need. */
  readonly configRules: readonly ConfigRule[];
  /** Whether signals that were sent past the API are applied. */
  readonly allowsManualSignals: boolean;
  /** Milliseconds by which the start of an interval's run is delayed; always the same for the same interval. */
  readonly jitterMs: (batchExportId: string, intervalName: string, interval: DataInterval) => number;
}

/** The delay before a run is retried doubles up to this. */
const maxRetryDelaySeconds = 60 * 60;

/** Derives from the settings when objects are deleted and intervals compared. */
const createMaintenancePolicy = (
  settings: Settings,
  configRules: readonly ConfigRule[],
): MaintenancePolicy => ({
  oldGenerationRetentionMs: settings.EXPORTD_OLD_GENERATION_RETENTION,
  targetFileRetentionMs: Math.max(0, ...configRules.map((rule) => rule.fileRetentionMs(settings))),
  orphanRetentionMs: settings.EXPORTD_ORPHAN_RETENTION,
  orphanRetryBudgetMs: settings.EXPORTD_ORPHAN_RETRY_BUDGET,
  comparisons: {
    firstMs: settings.EXPORTD_COMPARISON_FIRST,
    maxIntervalMs: settings.EXPORTD_COMPARISON_MAX_INTERVAL,
  },
  comparisonRowsPerSecond: settings.EXPORTD_COMPARISON_ROWS_PER_SECOND,
});

/** Derives the policies from the settings. @param configRules those of all capabilities */
export function createPolicies(settings: Settings, configRules: readonly ConfigRule[]): Policies {
  return {
    maxConcurrentRuns: settings.EXPORTD_MAX_CONCURRENT_RUNS,
    backfillConcurrency: settings.EXPORTD_BACKFILL_CONCURRENCY,
    repairConcurrency: settings.EXPORTD_REPAIR_CONCURRENCY,
    maxBackfillIntervals: settings.EXPORTD_MAX_BACKFILL_INTERVALS,
    maxBackfillsPerProject: settings.EXPORTD_MAX_BACKFILLS_PER_PROJECT,
    retry: {
      initialSeconds: settings.EXPORTD_RUN_RETRY_INITIAL / 1_000,
      maxSeconds: maxRetryDelaySeconds,
      maxRetries: settings.EXPORTD_RUN_RETRY_LIMIT,
    },
    pauseAfterFailures: settings.EXPORTD_PAUSE_AFTER_FAILURES,
    allowsManualSignals: settings.EXPORTD_MANUAL_SIGNALS,
    maintenance: createMaintenancePolicy(settings, configRules),
    configRules,
    jitterMs: (batchExportId, intervalName, interval) => {
      const length = nominalLengthMs(intervalName);
      const hour = 3_600_000;
      const spread =
        length >= hour ? settings.EXPORTD_JITTER_LONG : length * settings.EXPORTD_JITTER_SHORT_FRACTION;
      return Math.floor(spread * stableFraction(`${batchExportId}/${interval.start}`));
    },
  };
}

/** A pseudo-random number in [0, 1) that depends only on the text, so that a repeated decision is the same. */
const stableFraction = (text: string): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;

import { createHash } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import { nominalLengthMs, type DataInterval } from '../domain/intervals.ts';
import type { RetryPolicy } from '../domain/run.ts';

/** When what is left over is removed, and what was exported is counted again. */
export interface MaintenancePolicy {
  /** Milliseconds that objects stay after another generation took their place in the manifest. */
  readonly oldGenerationRetentionMs: number;
  /** Milliseconds that objects stay which no manifest can have named. */
  readonly orphanRetentionMs: number;
  /** Milliseconds after which an object that cannot be removed is left for good. */
  readonly orphanRetryBudgetMs: number;
  /** Milliseconds from an interval's end to the first and to the second count; 0 for none. */
  readonly recheckFirstMs: number;
  readonly recheckSecondMs: number;
}

/** The settings that decisions depend on, in the terms of the domain. */
export interface Policies {
  readonly maxConcurrentRuns: number;
  readonly backfillConcurrency: number;
  readonly maxBackfillIntervals: number;
  readonly maxBackfillsPerProject: number;
  readonly retry: RetryPolicy;
  /** How many Failed runs in a row pause an export or a backfill; 0 for never. */
  readonly pauseAfterFailures: number;
  readonly maintenance: MaintenancePolicy;
  /** Milliseconds by which the start of an export's interval is put off; the same whenever it is asked. */
  readonly jitterMs: (batchExportId: string, intervalName: string, interval: DataInterval) => number;
}

/** Reads the policies out of the settings. */
export function policiesOf(settings: Settings): Policies {
  return {
    maxConcurrentRuns: settings.EXPORTD_MAX_CONCURRENT_RUNS,
    backfillConcurrency: settings.EXPORTD_BACKFILL_CONCURRENCY,
    maxBackfillIntervals: settings.EXPORTD_MAX_BACKFILL_INTERVALS,
    maxBackfillsPerProject: settings.EXPORTD_MAX_BACKFILLS_PER_PROJECT,
    retry: {
      initialSeconds: settings.EXPORTD_RETRY_INITIAL_MS / 1_000,
      maxSeconds: settings.EXPORTD_RETRY_MAX_MS / 1_000,
      maxRetries: settings.EXPORTD_RETRY_LIMIT,
    },
    pauseAfterFailures: settings.EXPORTD_PAUSE_AFTER_FAILURES,
    maintenance: {
      oldGenerationRetentionMs: settings.EXPORTD_GRACE_MS,
      orphanRetentionMs: settings.EXPORTD_SWEEP_AFTER_MS,
      orphanRetryBudgetMs: settings.EXPORTD_SWEEP_GIVE_UP_MS,
      recheckFirstMs: settings.EXPORTD_RECHECK_FIRST_MS,
      recheckSecondMs: settings.EXPORTD_RECHECK_SECOND_MS,
    },
    jitterMs: (batchExportId, intervalName, interval) => {
      const length = nominalLengthMs(intervalName);
      const hour = 3_600_000;
      const spread =
        length >= hour ? settings.EXPORTD_JITTER_LONG_MS : length * settings.EXPORTD_JITTER_SHORT_FRACTION;
      return Math.floor(spread * fractionOf(`${batchExportId}/${interval.start}`));
    },
  };
}

/** A number in [0, 1) that looks random and never changes for the same text: a repeated decision must agree. */
const fractionOf = (text: string): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;

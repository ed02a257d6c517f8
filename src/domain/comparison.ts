import type { OpenBarrier, UnsettledBarrier } from './barrier.ts';
import { areComparable, differingBuckets, type Fingerprint, rowsOfFingerprint } from './fingerprint.ts';
import { type ExistingRun, exportedFingerprint, sourceBefore } from './run_state.ts';

/**
 * How an interval's rows in the source compare with those of its current manifest. `both`: some were added and some are
 * missing. `source_expired`: the source has none of them left.
 */
export type ComparisonOutcome = 'equal' | 'rows_added' | 'rows_missing' | 'both' | 'source_expired';

/** The outcome of a comparison with its numbers. */
export interface Comparison {
  readonly outcome: ComparisonOutcome;
  /** Rows of the current manifest, rejected rows included. */
  readonly bucket_rows: number;
  readonly source_rows: number;
  /** At least this many rows of the source are not in the bucket. */
  readonly added_rows: number;
  /** At least this many rows of the bucket are not in the source. */
  readonly missing_rows: number;
}

/**
 * The rows of a run's manifest, including rejected rows, to compare with those that the source has now. If persons decide
 * which rows are selected, these are all events of the project from before the first of them was read: one that arrived
 * later may be missing. Null if they are not comparable.
 */
export function rowsToCompare(
  run: Pick<ExistingRun, 'spec' | 'ranges' | 'rejected_file' | 'read_since' | 'source_fingerprint'>,
  source: Fingerprint,
): Fingerprint | null {
  const rows = source.all_events ? sourceBefore(run) : exportedFingerprint(run);
  return rows && areComparable(rows, source) ? rows : null;
}

/**
 * Compares the rows of a manifest with those of the source, bucket by bucket, so that a deleted row and a late one of
 * another time do not cancel out. In a bucket with equal counts and different rows, at least one was added and one is
 * missing. A bucket with fewer rows may have late ones too, which fingerprints do not show.
 * @throws RangeError when the fingerprints are not comparable
 */
export function compareFingerprints(manifest: Fingerprint, source: Fingerprint): Comparison {
  const numbers = {
    bucket_rows: rowsOfFingerprint(manifest),
    source_rows: rowsOfFingerprint(source),
    added_rows: 0,
    missing_rows: 0,
  };
  for (const { one, other } of differingBuckets(manifest, source)) {
    const more = (other?.rows ?? 0) - (one?.rows ?? 0);
    if (more >= 0) numbers.added_rows += Math.max(1, more);
    if (more <= 0) numbers.missing_rows += Math.max(1, -more);
  }
  return { outcome: outcomeOf(numbers), ...numbers };
}

function outcomeOf(numbers: Omit<Comparison, 'outcome'>): ComparisonOutcome {
  const { bucket_rows, source_rows, added_rows, missing_rows } = numbers;
  if (bucket_rows > 0 && source_rows === 0) return 'source_expired';
  if (added_rows > 0) return missing_rows > 0 ? 'both' : 'rows_added';
  return missing_rows > 0 ? 'rows_missing' : 'equal';
}

/** Whether two comparisons came out with the same numbers. */
export const areEqualComparisons = (one: Comparison, other: Comparison): boolean =>
  one.outcome === other.outcome &&
  one.bucket_rows === other.bucket_rows &&
  one.source_rows === other.source_rows &&
  one.added_rows === other.added_rows &&
  one.missing_rows === other.missing_rows;

/** When an interval is compared, in milliseconds. */
export interface ComparisonSchedule {
  /** From the start of comparisons to the first one; 0 for none. */
  readonly firstMs: number;
  /** The maximum between two comparisons. */
  readonly maxIntervalMs: number;
}

/** The first comparisons, as multiples of the first delay: by default an hour, a day and seven days. */
const firstFactors = [1, 24, 168];

/**
 * Returns the time of the next comparison after `sinceMs`, both in milliseconds since the start of comparisons. After
 * the first ones the time since then doubles, until comparisons are `maxIntervalMs` apart.
 */
export function nextComparisonMs({ firstMs, maxIntervalMs }: ComparisonSchedule, sinceMs: number): number {
  let at = 0;
  for (const factor of firstFactors) {
    at = Math.min(firstMs * factor, at + maxIntervalMs);
    if (at > sinceMs) return at;
  }
  // Without a first delay nothing doubles. A comparison that is requested nevertheless is repeated after the maximum.
  while (at > 0 && at < maxIntervalMs) {
    at *= 2;
    if (at > sinceMs) return at;
  }
  return at + maxIntervalMs * (Math.floor((sinceMs - at) / maxIntervalMs) + 1);
}

/** The part of the time between two comparisons by which one may come early, to be done together with a neighbour. */
const earlyPart = 1 / 8;

/** How many milliseconds before its time an interval may be compared together with a neighbour. */
export const maxEarlyMs = (fromMs: number, dueMs: number): number => Math.floor((dueMs - fromMs) * earlyPart);

/** An object of a run. Another object may have the same key: the planned file of a run that found the key taken. */
export interface DeletedObject {
  readonly key: string;
  readonly upload_id: string | null;
  readonly upload_token: string | null;
}

/** What object lock keeps of a deleted object: a version, and until when. */
export interface HeldVersion {
  readonly version_id: string;
  /** ISO 8601: the end of the last day, in UTC. */
  readonly until: string;
}

/** Events of a run after its end. None of them changes its status or its files. */
export type RunMaintenanceEvent =
  /**
   * An obsolete object was handled: an upload if `upload_id` is set, else a file or a manifest. If it was not `deleted`,
   * `reason` says why it stays in the bucket: until the date of `held`, or permanently.
   */
  | {
      type: 'RunObjectDeleted';
      data: DeletedObject & { deleted: boolean; reason: string | null; held?: HeldVersion };
    }
  /**
   * An object could not be deleted, for a transient reason. Only the first failure of an object or of a location is
   * recorded. `location_wide` is true if the error affects the whole location of a config.
   */
  | {
      type: 'RunObjectDeletionFailed';
      data: DeletedObject & { location_wide: boolean; reason: string };
    }
  /** The interval of its manifest was compared with the source, with another outcome than before. */
  | { type: 'IntervalCompared'; data: Comparison }
  /** The barrier of a run that did not settle is in another phase. */
  | { type: 'RunBarrierAdvanced'; data: { barrier: UnsettledBarrier | OpenBarrier } }
  /** All transactions that the run had not waited for have ended, and what followed from that is decided. */
  | { type: 'RunSettled'; data: { outcome: SettlingOutcome } }
  /** The automatic retry of a failed run was cancelled, so the progress it would resume from is obsolete. */
  | { type: 'RunRetryCancelled'; data: { reason: string } };

/**
 * What followed when the transactions had ended that an unsettled run had not waited for.
 * - `same_rows`: its files have the rows of the source.
 * - `exported_again`: they do not, or it is unknown.
 * - `no_late_rows`: rows were deleted from the source, and it has none that its files lack.
 * - `source_expired`: the source has no rows of the interval left.
 * - `not_exported_again`: they are persons without keys, and the run was already a repetition for this reason; or the last run of the
 *   interval was held because of the same rows; or rules of the bucket have deleted its objects.
 */
export type SettlingOutcome =
  | 'same_rows'
  | 'exported_again'
  | 'no_late_rows'
  | 'source_expired'
  | 'not_exported_again';

import type { OpenBarrier, UnsettledBarrier } from './barrier.ts';
import type { Comparison } from './comparison.ts';

/** An object of a run. Another object may have the same key: the planned file of a run that found the key taken. */
export interface DeletedObject {
  readonly key: string;
  readonly upload_id: string | null;
  readonly upload_token: string | null;
}

/** Events of a run after its end. None of them changes its status or its files. */
export type RunMaintenanceEvent =
  /**
   * An obsolete object was handled: an upload if `upload_id` is set, else a file or a manifest. If it was not `deleted`,
   * `reason` says why it stays in the bucket permanently.
   */
  | {
      type: 'RunObjectDeleted';
      data: DeletedObject & { deleted: boolean; reason: string | null };
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
 * - `exported_again`: they do not, or nobody knows because the rows are persons.
 * - `no_late_rows`: rows were deleted from the source, and it has none that its files lack.
 * - `source_expired`: the source has no rows of the interval left.
 * - `not_exported_again`: they are persons, and the run was already a repetition for this reason; or the last run of the
 *   interval was held because of the same rows; or rules of the bucket have deleted its objects.
 */
export type SettlingOutcome =
  | 'same_rows'
  | 'exported_again'
  | 'no_late_rows'
  | 'source_expired'
  | 'not_exported_again';

/** Events of a run after its end. None of them changes the run's state. */
export type RunMaintenanceEvent =
  /**
   * An obsolete object was handled: an upload if `upload_id` is set, else a file or a manifest. If it was not `deleted`,
   * `reason` says why it stays in the bucket permanently.
   */
  | {
      type: 'RunObjectDeleted';
      data: { key: string; upload_id: string | null; deleted: boolean; reason: string | null };
    }
  /**
   * An object could not be deleted, for a transient reason. Only the first failure of an object or of a location is
   * recorded. `location_wide` is true if the error affects the whole location of a config.
   */
  | {
      type: 'RunObjectDeletionFailed';
      data: { key: string; upload_id: string | null; location_wide: boolean; reason: string };
    }
  /** The source was counted again: it has `source_rows`, the manifest has `rows`, rejected rows included. */
  | { type: 'RunRechecked'; data: { check: RecheckNumber; rows: number; source_rows: number } }
  /** The automatic retry of a failed run was cancelled, so the progress it would resume from is obsolete. */
  | { type: 'RunRetryCancelled'; data: { reason: string } };

/** The number of a re-check: 1 (by default an hour after the interval) or 2 (a day after it). */
export type RecheckNumber = 1 | 2;

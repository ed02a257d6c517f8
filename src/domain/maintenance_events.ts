/** What happens to a run after its end; none of it changes the run's state. */
export type RunMaintenanceEvent =
  /**
   * An object that nobody needs any more was dealt with: an upload when `upload_id` is given, else a file or a manifest.
   * Where it was not `removed`, `reason` says why it stays in the bucket for good.
   */
  | {
      type: 'RunObjectDeleted';
      data: { key: string; upload_id: string | null; deleted: boolean; reason: string | null };
    }
  /**
   * An object could not be removed, for a reason that may pass; only the first such try of an object, or of a place, is
   * recorded. `location_wide` says whether the fault is one of the whole place that a config leads to.
   */
  | {
      type: 'RunObjectDeletionFailed';
      data: { key: string; upload_id: string | null; location_wide: boolean; reason: string };
    }
  /** The source was counted again: it has `source_rows` where the manifest has `rows`, rejected ones included. */
  | { type: 'RunRechecked'; data: { check: RecheckNumber; rows: number; source_rows: number } }
  /** Nobody wants the automatic retry of a failed run any more, so what it would go on with is not needed. */
  | { type: 'RunRetryCancelled'; data: { reason: string } };

/** Which of the counts after an interval: the first (an hour later) or the second (a day later). */
export type RecheckNumber = 1 | 2;

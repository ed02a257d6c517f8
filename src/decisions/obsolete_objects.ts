import type { DeletedObject } from '../domain/maintenance_events.ts';
import { runDecider } from '../domain/run.ts';
import type { RunSpec } from '../domain/run_state.ts';
import type { Pool } from '../journal/database.ts';
import type { Journal } from '../journal/journal.ts';
import { hasActiveRun } from './active_runs.ts';
import type { MaintenancePolicy } from './policies.ts';

/** An object of a destination that is no longer needed. */
export interface ObsoleteObject extends Pick<
  RunSpec,
  'batch_export_id' | 'team_id' | 'model' | 'config_version' | 'data_interval_start' | 'data_interval_end'
> {
  /** Its key in the read model. */
  readonly position: number;
  readonly ordinal: number;
  /** The run that it belongs to. */
  readonly run_id: string;
  readonly object_type: 'upload' | 'file' | 'manifest';
  readonly key: string;
  /** Set for an upload. */
  readonly upload_id: string | null;
  /** The token of an upload and of the file completed from it; null for a file written in one request. */
  readonly upload_token: string | null;
  /** Whether a manifest may refer to it, because its run claimed publishing. */
  readonly publish_claimed: boolean;
  /** The export's current config; null if the export was never created. */
  readonly newest_config_version: number | null;
  /** Milliseconds since its first failed deletion, for a reason specific to it; null if none failed. */
  readonly failing_for_ms: number | null;
  /** Milliseconds since its location started to fail; null if a deletion has succeeded there since, or none failed. */
  readonly location_failing_for_ms: number | null;
  /** The current manifest of its interval, and that manifest's config; null if there is none. */
  readonly current_key: string | null;
  readonly current_config_version: number | null;
}

/** The outcome for an object. If it was not deleted, the reason says why it stays permanently. */
export interface Deletion {
  readonly object: ObsoleteObject;
  readonly deleted: boolean;
  readonly reason: string | null;
}

/** A deletion that failed for a transient reason, specific to the object or affecting its whole location. */
export interface FailedDeletion {
  readonly object: ObsoleteObject;
  readonly locationWide: boolean;
  readonly reason: string;
}

/**
 * SQL condition: the retention of a row `object` is over; $1 and $2 are `retentionPeriods`. A manifest at a former
 * location waits for the active runs of its interval: the destination may have moved back, and a run may publish there.
 */
export const isObsolete = `object.obsolete_at is not null
  and object.obsolete_at <= clock_timestamp()
    - make_interval(secs => case when object.publish_claimed then $1::bigint else $2::bigint end / 1000.0)
  and not (object.object_type = 'manifest' and ${hasActiveRun('object')})`;

/** Retention in milliseconds of objects that a manifest may refer to, and of all others. */
export const retentionPeriods = ({
  oldGenerationRetentionMs,
  orphanRetentionMs,
}: MaintenancePolicy): [number, number] => [oldGenerationRetentionMs, orphanRetentionMs];

/**
 * Reads the export's obsolete objects, at most `maxPerConfig` of each config, so that a failing location does not block
 * the others. Sorted by interval, a manifest before the files that it refers to; objects that failed before come last.
 */
export async function readObsoleteObjects(
  pool: Pool,
  policy: MaintenancePolicy,
  batchExportId: string,
  maxPerConfig: number,
): Promise<ObsoleteObject[]> {
  const { rows } = await pool.query<ObsoleteObject>(
    `with object as (
       select object.*, row_number() over (partition by object.config_version order by ${deletionOrder}) as rank
       from exportd.destination_objects object where object.batch_export_id = $3 and ${isObsolete}
     )
     select object.batch_export_id, run.team_id, run.model, object.config_version, object.data_interval_start,
       object.data_interval_end, object.position, object.ordinal, object.run_id, object.object_type, object.key,
       object.upload_id, object.upload_token, object.publish_claimed, export.config_version as newest_config_version,
       ${millisecondsSince('object.failing_since')} as failing_for_ms,
       ${millisecondsSince('failure.failing_since')} as location_failing_for_ms,
       current.key as current_key, current.config_version as current_config_version
     from object join exportd.batch_export_runs run on run.id = object.run_id
     left join exportd.batch_exports export on export.id = object.batch_export_id
     left join exportd.location_failures failure on failure.batch_export_id = object.batch_export_id
       and failure.config_version = object.config_version
     left join lateral (
       select * from exportd.destination_objects manifest
       where manifest.object_type = 'manifest' and manifest.obsolete_at is null
         and manifest.batch_export_id = object.batch_export_id
         and manifest.data_interval_start = object.data_interval_start
         and manifest.data_interval_end = object.data_interval_end
       order by manifest.generation desc limit 1) current on true
     where object.rank <= $4 order by ${deletionOrder}`,
    [...retentionPeriods(policy), batchExportId, maxPerConfig],
  );
  return rows;
}

const deletionOrder = `object.failing_since is not null, object.data_interval_start, object.data_interval_end,
  object.object_type = 'manifest' desc, object.position, object.ordinal`;

const millisecondsSince = (moment: string): string =>
  `(extract(epoch from clock_timestamp() - ${moment}) * 1000)::bigint`;

/** Records the outcomes for objects in the streams of their runs. Idempotent. */
export async function recordDeletions(journal: Journal, deletions: readonly Deletion[]): Promise<void> {
  const byRun = Map.groupBy(deletions, ({ object }) => object.run_id);
  for (const [runId, ofRun] of byRun)
    await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, runId);
      for (const { object, deleted, reason } of ofRun)
        await stream.append(`deleted:${object.position}/${object.ordinal}`, [
          {
            type: 'RunObjectDeleted',
            data: { ...identityOf(object), deleted, reason },
          },
        ]);
    });
}

/** Records the first failure of each object or location, from which the retry budget counts. */
export async function recordFailedDeletions(
  journal: Journal,
  failures: readonly FailedDeletion[],
): Promise<void> {
  for (const { object, locationWide, reason } of failures) {
    if ((locationWide ? object.location_failing_for_ms : object.failing_for_ms) !== null) continue;
    const identity = identityOf(object);
    await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, object.run_id);
      // A location may fail, recover and fail again at the same object, so each failure needs a different cause.
      await stream.append(
        `deletion failed:${object.position}/${object.ordinal}/${transaction.now.toISOString()}`,
        [{ type: 'RunObjectDeletionFailed', data: { ...identity, location_wide: locationWide, reason } }],
      );
    });
  }
}

const identityOf = ({ key, upload_id, upload_token }: ObsoleteObject): DeletedObject => ({
  key,
  upload_id,
  upload_token,
});

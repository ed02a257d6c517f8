import { activeRunStatuses, runDecider, type RunSpec } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import type { Journal } from '../journal/journal.ts';
import type { MaintenancePolicy } from './policies.ts';

/** An object of a destination that nobody needs any more. */
export interface ObsoleteObject extends Pick<
  RunSpec,
  'batch_export_id' | 'team_id' | 'model' | 'config_version' | 'data_interval_start' | 'data_interval_end'
> {
  /** Its place in the read model. */
  readonly position: number;
  /** The run that it belongs to. */
  readonly run_id: string;
  readonly kind: 'upload' | 'file' | 'manifest';
  readonly key: string;
  /** Of an upload. */
  readonly upload_id: string | null;
  /** Of an upload and of the file that was made of it; null for a file that was written in one step. */
  readonly upload_token: string | null;
  /** Whether a manifest may have named it: the run had claimed publishing. */
  readonly publish_claimed: boolean;
  /** The config of the export that is in force; null for an export that was never created. */
  readonly newest_config_version: number | null;
  /** Milliseconds since removing it failed first for a reason of its own; null while it did not. */
  readonly failing_for_ms: number | null;
  /** Milliseconds since the first failed try of its place, of which nothing could be removed since; null for none. */
  readonly location_failing_for_ms: number | null;
  /** The manifest that readers of its interval follow now, and the config of its place; null before the first one. */
  readonly current_key: string | null;
  readonly current_config_version: number | null;
}

/** What became of an object; the reason says why one that was not removed stays for good. */
export interface Deletion {
  readonly object: ObsoleteObject;
  readonly deleted: boolean;
  readonly reason: string | null;
}

/** A try to remove an object that failed for a reason which may pass: one of its own, or one of its whole place. */
export interface FailedDeletion {
  readonly object: ObsoleteObject;
  readonly locationWide: boolean;
  readonly reason: string;
}

/**
 * The condition on a row `object` that its time is over; $1 and $2 are `retentionPeriods`. Manifests in a place that was
 * left wait for the runs of their interval: the place may be the destination's again, and one of them publish there.
 */
export const isObsolete = `object.obsolete_at is not null
  and object.obsolete_at <= clock_timestamp()
    - make_interval(secs => case when object.publish_claimed then $1::bigint else $2::bigint end / 1000.0)
  and not (object.kind = 'manifest' and exists (select from exportd.batch_export_runs active
    where active.batch_export_id = object.batch_export_id and active.data_interval_start = object.data_interval_start
      and active.status in (${activeRunStatuses.map((status) => `'${status}'`).join(', ')})))`;

/** Milliseconds that objects stay which a manifest may have named, and the others. */
export const retentionPeriods = ({
  oldGenerationRetentionMs,
  orphanRetentionMs,
}: MaintenancePolicy): [number, number] => [oldGenerationRetentionMs, orphanRetentionMs];

/**
 * The export's objects whose time is over, at most so many of each config: those of a place that fails must not take the
 * turn of another's. They come interval by interval, a manifest before the files that it names; those come last that
 * failed for a reason of their own.
 */
export async function readObsoleteObjects(
  pool: Pool,
  policy: MaintenancePolicy,
  batchExportId: string,
  maxPerConfig: number,
): Promise<ObsoleteObject[]> {
  const { rows } = await pool.query<ObsoleteObject>(
    `with object as (
       select object.*, row_number() over (partition by object.config_version order by ${inTurn}) as turn
       from exportd.destination_objects object where object.batch_export_id = $3 and ${isObsolete}
     )
     select object.batch_export_id, run.team_id, run.model, object.config_version, object.data_interval_start,
       object.data_interval_end, object.position, object.run_id, object.kind, object.key, object.upload_id, object.upload_token,
       object.publish_claimed, export.config_version as newest_config_version,
       ${millisecondsSince('object.failing_since')} as failing_for_ms,
       ${millisecondsSince('failure.failing_since')} as place_failing_for_ms,
       current.key as current_key, current.config_version as current_config_version
     from object join exportd.batch_export_runs run on run.id = object.run_id
     left join exportd.batch_exports export on export.id = object.batch_export_id
     left join exportd.location_failures failure on failure.batch_export_id = object.batch_export_id
       and failure.config_version = object.config_version
     left join exportd.destination_objects current on current.kind = 'manifest' and current.obsolete_at is null
       and current.batch_export_id = object.batch_export_id
       and current.data_interval_start = object.data_interval_start
       and current.data_interval_end = object.data_interval_end
     where object.turn <= $4 order by ${inTurn}`,
    [...retentionPeriods(policy), batchExportId, maxPerConfig],
  );
  return rows;
}

const inTurn = `object.failing_since is not null, object.data_interval_start, object.data_interval_end,
  object.kind = 'manifest' desc, object.position`;

const millisecondsSince = (moment: string): string =>
  `(extract(epoch from clock_timestamp() - ${moment}) * 1000)::bigint`;

/** Records what became of objects, in the streams of the runs that they belong to. A repeat changes nothing. */
export async function recordDeletions(journal: Journal, deletions: readonly Deletion[]): Promise<void> {
  const byRun = Map.groupBy(deletions, ({ object }) => object.run_id);
  for (const [runId, ofRun] of byRun)
    await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, runId);
      for (const { object, deleted, reason } of ofRun)
        await stream.append(`deleted:${object.position}`, [
          {
            type: 'RunObjectDeleted',
            data: { key: object.key, upload_id: object.upload_id, deleted, reason },
          },
        ]);
    });
}

/** Records that removing objects failed, where that is new: it is what giving up counts from. */
export async function recordFailedDeletions(
  journal: Journal,
  failures: readonly FailedDeletion[],
): Promise<void> {
  for (const { object, locationWide, reason } of failures) {
    if ((locationWide ? object.location_failing_for_ms : object.failing_for_ms) !== null) continue;
    const { run_id, key, upload_id } = object;
    await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, run_id);
      // A place may fail, answer, and fail again at the same object: each time is a cause of its own.
      await stream.append(`deletion failed:${object.position}/${transaction.now.toISOString()}`, [
        { type: 'RunObjectDeletionFailed', data: { key, upload_id, location_wide: locationWide, reason } },
      ]);
    });
  }
}

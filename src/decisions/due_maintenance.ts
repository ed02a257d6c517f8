import type { DeletedObject, HeldVersion } from '../domain/comparison.ts';
import { runDecider } from '../domain/run.ts';
import type { RunSpec } from '../domain/run_state.ts';
import type { Pool } from '../journal/database.ts';
import type { Journal } from '../journal/journal.ts';
import { type ComparisonGroup, readDueGroups } from './comparisons.ts';
import { hasActiveRun } from './active_runs.ts';
import type { MaintenancePolicy } from './policies.ts';
import { hasUnsettledRuns, readExportsToSettle } from './unsettled_runs.ts';

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
  /** Whether the export was deleted: then no later manifest replaces one that names the object. */
  readonly export_deleted: boolean;
  /** The version that object lock has kept, whose time is over now; null of anything else. */
  readonly held_version: string | null;
  /** Milliseconds since its first failed deletion, for a reason specific to it; null if none failed. */
  readonly failing_for_ms: number | null;
  /** Milliseconds since its location started to fail; null if a deletion has succeeded there since, or none failed. */
  readonly location_failing_for_ms: number | null;
  /** The current manifest of its interval, and that manifest's config; null if there is none. */
  readonly current_key: string | null;
  readonly current_config_version: number | null;
}

/** The outcome for an object. If it was not deleted, the reason says why it stays, permanently or until `held` says. */
export interface Deletion {
  readonly object: ObsoleteObject;
  readonly deleted: boolean;
  readonly reason: string | null;
  readonly held?: HeldVersion | undefined;
}

/** A deletion that failed for a transient reason, specific to the object or affecting its whole location. */
export interface FailedDeletion {
  readonly object: ObsoleteObject;
  readonly locationWide: boolean;
  readonly reason: string;
}

/** SQL condition: a row `object` was written for a target, whose older versions readers may still read. */
const isOfTarget = `exists (select from exportd.destination_configs config
  where config.batch_export_id = object.batch_export_id and config.version = object.config_version
    and config.config->>'table_format' is not null)`;

/**
 * SQL condition: the retention of a row `object` is over, and that of object lock, if it holds the object; $1 to $3 are
 * `retentionPeriods`. A manifest at a former location waits for the active runs of its interval: the destination may have
 * moved back, and a run may publish there.
 */
const isObsolete = `object.obsolete_at is not null
  and (object.held_until is null or object.held_until <= clock_timestamp())
  and object.obsolete_at <= clock_timestamp()
    - make_interval(secs => case when not object.publish_claimed then $2::bigint
        when object.object_type = 'file' and ${isOfTarget} then greatest($1::bigint, $3::bigint)
        else $1::bigint end / 1000.0)
  and not (object.object_type = 'manifest' and ${hasActiveRun('object')})`;

/** Retention in milliseconds of objects that a manifest may refer to, of all others, and of files of targets. */
const retentionPeriods = (policy: MaintenancePolicy): [number, number, number] => [
  policy.oldGenerationRetentionMs,
  policy.orphanRetentionMs,
  policy.targetFileRetentionMs,
];

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
       from exportd.destination_objects object where object.batch_export_id = $4 and ${isObsolete}
     )
     select object.batch_export_id, run.team_id, run.model, object.config_version, object.data_interval_start,
       object.data_interval_end, object.position, object.ordinal, object.run_id, object.object_type, object.key,
       object.upload_id, object.upload_token, object.publish_claimed, object.held_version,
       coalesce(export.deleted, false) as export_deleted,
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
     where object.rank <= $5 order by ${deletionOrder}`,
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
      for (const { object, deleted, reason, held } of ofRun) {
        const id = `${object.position}/${object.ordinal}`;
        // A lock may be extended.
        await stream.append(held ? `held:${id}/${held.until}` : `deleted:${id}`, [
          {
            type: 'RunObjectDeleted',
            data: { ...identityOf(object), deleted, reason, ...(held && { held }) },
          },
        ]);
      }
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

/** One task of the maintenance, with the input of its activity. */
export type MaintenanceTask =
  /** Delete the obsolete objects of an export. */
  | { readonly kind: 'cleanUpExport'; readonly input: { readonly batch_export_id: string } }
  /** Compare intervals with the source. */
  | { readonly kind: 'compareIntervals'; readonly input: ComparisonGroup }
  /** Check what still blocks the barriers of unsettled runs. */
  | { readonly kind: 'checkBarriers'; readonly input: Record<string, never> }
  /** Follow up the runs of an export whose barrier has opened. */
  | { readonly kind: 'settleRuns'; readonly input: { readonly batch_export_id: string } };
export type MaintenanceKind = MaintenanceTask['kind'];

/** The maximum number of tasks of a kind per read; the next read follows when they are done. */
const maxTasks = 100;

/** The due tasks, and whether there are more. */
export interface DueMaintenance {
  readonly tasks: readonly MaintenanceTask[];
  readonly has_more: boolean;
}

/**
 * Reads the due tasks, longest due first, without the delayed ones, each given as the kind and the values of its input,
 * separated by slashes.
 */
export async function readDueMaintenance(
  pool: Pool,
  policy: MaintenancePolicy,
  delayedTasks: readonly string[],
): Promise<DueMaintenance> {
  const excluded = (kind: MaintenanceKind): string[][] =>
    delayedTasks.map((name) => name.split('/')).flatMap(([of, ...input]) => (of === kind ? [input] : []));
  const { rows: exports } = await pool.query<{ batch_export_id: string }>(
    `select batch_export_id from exportd.destination_objects object
     where ${isObsolete} and batch_export_id <> all($4::uuid[])
     group by batch_export_id order by min(obsolete_at) limit $5`,
    [...retentionPeriods(policy), excluded('cleanUpExport').map(([id = '']) => id), maxTasks],
  );
  const groups = await readDueGroups(
    pool,
    policy,
    excluded('compareIntervals').map(([team = '', selection_hash = '']) => ({
      team_id: Number(team),
      selection_hash,
    })),
    maxTasks,
  );
  const hasUnsettled = excluded('checkBarriers').length === 0 && (await hasUnsettledRuns(pool));
  const toSettle = await readExportsToSettle(
    pool,
    excluded('settleRuns').map(([id = '']) => id),
    maxTasks,
  );
  return {
    tasks: [
      ...(hasUnsettled ? [{ kind: 'checkBarriers', input: {} } as const] : []),
      ...toSettle.map((input): MaintenanceTask => ({ kind: 'settleRuns', input })),
      ...groups.map((input): MaintenanceTask => ({ kind: 'compareIntervals', input })),
      ...exports.map((input): MaintenanceTask => ({ kind: 'cleanUpExport', input })),
    ],
    has_more: [groups, exports, toSettle].some(({ length }) => length === maxTasks),
  };
}

import type { Connection, Pool } from '../journal/database.ts';
import { activeStatuses } from '../projections/runs.ts';
import type { MaintenancePolicy } from './policies.ts';

const hourMs = 3_600_000;

/** What is removed. */
interface RemovedSecrets {
  /** Of all exports by default. */
  readonly batchExportId?: string;
  /** How long after the deletion of an export its secrets stay while it has objects to delete, in milliseconds. */
  readonly cleanUpMs: number;
  /** Whether also those of buckets that an export has left: its files there can then be neither verified nor deleted. */
  readonly formerBuckets?: boolean;
}

/** The time that the clean-up of a deleted export gets: its objects become due first. */
export const cleanUpTimeOf = ({
  oldGenerationRetentionMs,
  orphanRetentionMs,
}: Pick<MaintenancePolicy, 'oldGenerationRetentionMs' | 'orphanRetentionMs'>): number =>
  Math.max(oldGenerationRetentionMs, orphanRetentionMs) + hourMs;

/**
 * A withdrawn command becomes pending again when its request is repeated, so its config version is kept. After a day it is
 * rejected.
 */
const rejectWithdrawn = `
  update exportd.commands set status = 'rejected', decided_at = clock_timestamp(), outcome = jsonb_build_object(
    'code', 'conflict', 'attr', null,
    'detail', 'The request was withdrawn more than a day ago. Send it with another Idempotency-Key.')
  where status = 'withdrawn' and created_at < clock_timestamp() - interval '1 day'`;

/**
 * The time by which the secrets of a deleted export are removed, which its clean-up still needs; null if it has none.
 * @param cleanUpMs as of `removeSecrets`
 */
export async function readRemovalTime(
  pool: Pool,
  batchExportId: string,
  cleanUpMs: number,
): Promise<string | null> {
  const { rows } = await pool.query<{ until: string }>(
    `select last_updated_at + $2 * interval '1 millisecond' as until from exportd.batch_exports export
     where id = $1 and deleted and exists (
       select from exportd.destination_configs config where config.batch_export_id = export.id and config.secrets <> '{}')`,
    [batchExportId, cleanUpMs],
  );
  return rows[0]?.until ?? null;
}

const sameBucket = (other: string): string => `${other}.batch_export_id = config.batch_export_id
  and ${other}.config->>'bucket_name' is not distinct from config.config->>'bucket_name'
  and ${other}.config->>'endpoint_url' is not distinct from config.config->>'endpoint_url'`;

/**
 * Removes the secrets of config versions that no run can need: of deleted exports, of rejected commands, and of replaced
 * versions without an unfinished run. What is left to do at a replaced version uses the credentials of the newest one that
 * leads to the same bucket. So the newest version of a former bucket keeps them while the bucket may have files of the
 * export, and that of a deleted export while objects are left to delete.
 * @returns the number of versions without their secrets
 */
export async function removeSecrets(
  connection: Connection,
  { batchExportId, cleanUpMs, formerBuckets = false }: RemovedSecrets,
): Promise<number> {
  if (batchExportId === undefined) await connection.query(rejectWithdrawn);
  const { rowCount } = await connection.query(
    `update exportd.destination_configs removed set secrets = '{}', secrets_removed_at = clock_timestamp()
     from exportd.destination_configs config
     left join exportd.batch_exports export on export.id = config.batch_export_id
     where removed.batch_export_id = config.batch_export_id and removed.version = config.version
       and config.secrets <> '{}' and ($1::uuid is null or config.batch_export_id = $1)
       and (export.deleted or export.config_version is distinct from config.version)
       and (export.deleted or not exists (
         select from exportd.commands command
         where command.batch_export_id = config.batch_export_id and command.status in ('pending', 'withdrawn')))
       and not exists (
         select from exportd.batch_export_runs run
         where run.batch_export_id = config.batch_export_id and run.config_version = config.version
           and run.status in (${activeStatuses}))
       and (
         exists (
           select from exportd.destination_configs newer
           where ${sameBucket('newer')} and newer.version > config.version and newer.secrets_removed_at is null)
         or export.id is null
         or case when export.deleted
           then export.last_updated_at <= clock_timestamp() - $2 * interval '1 millisecond' or not exists (
             select from exportd.destination_objects object
             where object.batch_export_id = config.batch_export_id and object.obsolete_at is not null)
           else $3 or not exists (
             select from exportd.batch_export_runs run
             join exportd.destination_configs used
               on used.batch_export_id = run.batch_export_id and used.version = run.config_version
             where run.batch_export_id = config.batch_export_id and ${sameBucket('used')})
             and not exists (
             select from exportd.destination_configs used
             where ${sameBucket('used')} and exists (
               select from exportd.intervals interval where interval.batch_export_id = config.batch_export_id
                 and interval.collapsed_config_version = used.version))
         end)`,
    [batchExportId ?? null, cleanUpMs, formerBuckets],
  );
  return rowCount ?? 0;
}

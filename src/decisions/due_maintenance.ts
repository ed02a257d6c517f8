import type { Pool } from '../journal/database.ts';
import { isObsolete, retentionPeriods } from './obsolete_objects.ts';
import type { MaintenancePolicy } from './policies.ts';
import { isRecheckDue, recheckDelays } from './due_rechecks.ts';

/** What is done for one export: its bucket is cleaned up, or its rows are counted again. */
export type MaintenanceKind = 'cleanUpExport' | 'recheckRuns';

/** A piece of the upkeep: one kind of work for one export. */
export interface MaintenanceTask {
  readonly kind: MaintenanceKind;
  readonly batch_export_id: string;
}

/** Of one kind that one look finds; the next one follows when they are done. */
const maxTasks = 100;

/** What there is to do now, and whether that is not all. */
export interface DueMaintenance {
  readonly tasks: readonly MaintenanceTask[];
  readonly has_more: boolean;
}

/** Finds what is due, the longest due first, without the tasks that are put off, each named `<kind>/<export>`. */
export async function readDueMaintenance(
  pool: Pool,
  policy: MaintenancePolicy,
  putOff: readonly string[],
): Promise<DueMaintenance> {
  const named = (kind: MaintenanceKind) =>
    putOff.filter((name) => name.startsWith(`${kind}/`)).map((name) => name.slice(kind.length + 1));
  const { rows: uncleaned } = await pool.query<{ batch_export_id: string }>(
    `select batch_export_id from exportd.destination_objects object
     where ${isObsolete} and batch_export_id <> all($3::uuid[])
     group by batch_export_id order by min(obsolete_at) limit $4`,
    [...retentionPeriods(policy), named('cleanUpExport'), maxTasks],
  );
  const { rows: uncounted } = await pool.query<{ batch_export_id: string }>(
    `select recheck.batch_export_id from exportd.rechecks recheck
     where ${isRecheckDue} and recheck.batch_export_id <> all($3::uuid[])
     group by recheck.batch_export_id order by min(data_interval_end) limit $4`,
    [...recheckDelays(policy), named('recheckRuns'), maxTasks],
  );
  const tasks = (kind: MaintenanceKind, rows: readonly { batch_export_id: string }[]): MaintenanceTask[] =>
    rows.map(({ batch_export_id }) => ({ kind, batch_export_id }));
  return {
    tasks: [...tasks('recheckRuns', uncounted), ...tasks('cleanUpExport', uncleaned)],
    has_more: uncounted.length === maxTasks || uncleaned.length === maxTasks,
  };
}

import type { Pool } from '../journal/database.ts';
import { isObsolete, retentionPeriods } from './obsolete_objects.ts';
import type { MaintenancePolicy } from './policies.ts';
import { isRecheckDue, recheckDelays } from './due_rechecks.ts';

/** The maintenance of one export: delete its obsolete objects, or count its rows again. */
export type MaintenanceKind = 'cleanUpExport' | 'recheckRuns';

/** One kind of maintenance for one export. */
export interface MaintenanceTask {
  readonly kind: MaintenanceKind;
  readonly batch_export_id: string;
}

/** The maximum number of tasks of a kind per read; the next read follows when they are done. */
const maxTasks = 100;

/** The due tasks, and whether there are more. */
export interface DueMaintenance {
  readonly tasks: readonly MaintenanceTask[];
  readonly has_more: boolean;
}

/** Reads the due tasks, longest due first, without the delayed ones, each given as `<kind>/<export>`. */
export async function readDueMaintenance(
  pool: Pool,
  policy: MaintenancePolicy,
  delayedTasks: readonly string[],
): Promise<DueMaintenance> {
  const excludedExports = (kind: MaintenanceKind) =>
    delayedTasks.filter((name) => name.startsWith(`${kind}/`)).map((name) => name.slice(kind.length + 1));
  const { rows: cleanUpRows } = await pool.query<{ batch_export_id: string }>(
    `select batch_export_id from exportd.destination_objects object
     where ${isObsolete} and batch_export_id <> all($3::uuid[])
     group by batch_export_id order by min(obsolete_at) limit $4`,
    [...retentionPeriods(policy), excludedExports('cleanUpExport'), maxTasks],
  );
  const { rows: recheckRows } = await pool.query<{ batch_export_id: string }>(
    `select recheck.batch_export_id from exportd.rechecks recheck
     where ${isRecheckDue} and recheck.batch_export_id <> all($3::uuid[])
     group by recheck.batch_export_id order by min(data_interval_end) limit $4`,
    [...recheckDelays(policy), excludedExports('recheckRuns'), maxTasks],
  );
  const tasks = (kind: MaintenanceKind, rows: readonly { batch_export_id: string }[]): MaintenanceTask[] =>
    rows.map(({ batch_export_id }) => ({ kind, batch_export_id }));
  return {
    tasks: [...tasks('recheckRuns', recheckRows), ...tasks('cleanUpExport', cleanUpRows)],
    has_more: recheckRows.length === maxTasks || cleanUpRows.length === maxTasks,
  };
}

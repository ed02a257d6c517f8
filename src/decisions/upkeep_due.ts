import type { Pool } from '../journal/database.ts';
import { isObsolete, obsoletePeriods } from './upkeep_objects.ts';
import type { UpkeepPolicy } from './policies.ts';
import { isRecheckDue, recheckMoments } from './upkeep_rechecks.ts';

/** What is done for one export: its bucket is cleaned up, or its rows are counted again. */
export type UpkeepKind = 'cleanUpExport' | 'recheckRuns';

/** A piece of the upkeep: one kind of work for one export. */
export interface UpkeepTask {
  readonly kind: UpkeepKind;
  readonly batch_export_id: string;
}

/** Of one kind that one look finds; the next one follows when they are done. */
const tasksAtOnce = 100;

/** What there is to do now, and whether that is not all. */
export interface DueUpkeep {
  readonly tasks: readonly UpkeepTask[];
  readonly more: boolean;
}

/** Finds what is due, the longest due first, without the tasks that are put off, each named `<kind>/<export>`. */
export async function findDueUpkeep(
  pool: Pool,
  policy: UpkeepPolicy,
  putOff: readonly string[],
): Promise<DueUpkeep> {
  const named = (kind: UpkeepKind) =>
    putOff.filter((name) => name.startsWith(`${kind}/`)).map((name) => name.slice(kind.length + 1));
  const { rows: uncleaned } = await pool.query<{ batch_export_id: string }>(
    `select batch_export_id from exportd.destination_objects object
     where ${isObsolete} and batch_export_id <> all($3::uuid[])
     group by batch_export_id order by min(obsolete_at) limit $4`,
    [...obsoletePeriods(policy), named('cleanUpExport'), tasksAtOnce],
  );
  const { rows: uncounted } = await pool.query<{ batch_export_id: string }>(
    `select recheck.batch_export_id from exportd.rechecks recheck
     where ${isRecheckDue} and recheck.batch_export_id <> all($3::uuid[])
     group by recheck.batch_export_id order by min(data_interval_end) limit $4`,
    [...recheckMoments(policy), named('recheckRuns'), tasksAtOnce],
  );
  const tasks = (kind: UpkeepKind, rows: readonly { batch_export_id: string }[]): UpkeepTask[] =>
    rows.map(({ batch_export_id }) => ({ kind, batch_export_id }));
  return {
    tasks: [...tasks('recheckRuns', uncounted), ...tasks('cleanUpExport', uncleaned)],
    more: uncounted.length === tasksAtOnce || uncleaned.length === tasksAtOnce,
  };
}

import type { Pool } from '../journal/database.ts';
import { readDueGroups, type ComparisonGroup } from './due_comparisons.ts';
import { isObsolete, retentionPeriods } from './obsolete_objects.ts';
import type { MaintenancePolicy } from './policies.ts';
import { hasUnsettledRuns, readExportsToSettle } from './unsettled_runs.ts';

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
     where ${isObsolete} and batch_export_id <> all($3::uuid[])
     group by batch_export_id order by min(obsolete_at) limit $4`,
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

import { batchExportDecider } from '../domain/batch_export.ts';
import { activeRunStatuses, runDecider, type RunSpec } from '../domain/run.ts';
import type { RecheckNumber } from '../domain/maintenance_events.ts';
import { storeCommand } from '../journal/commands.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { deterministicId, type Journal } from '../journal/journal.ts';
import { writeLogLine } from '../journal/log_lines.ts';
import { findActiveRun } from './create_run.ts';
import type { MaintenancePolicy } from './policies.ts';

/** A Completed run whose interval is due for a re-check. */
export interface DueRecheck extends Pick<
  RunSpec,
  'batch_export_id' | 'team_id' | 'model' | 'config_version' | 'data_interval_start' | 'data_interval_end'
> {
  readonly run_id: string;
  readonly check: RecheckNumber;
}

/** SQL condition: the re-check is due. It is skipped if the run itself completed, and so counted, after that time. */
const isCheckDue = (afterMs: '$1' | '$2', check: RecheckNumber): string =>
  `(recheck.checks_done < ${check} and recheck.completed_after_ms < ${afterMs}::bigint
    and recheck.data_interval_end <= clock_timestamp() - make_interval(secs => ${afterMs}::bigint / 1000.0))`;

/**
 * SQL condition: a re-check of a row `recheck` is due; $1 and $2 are `recheckDelays`. Paused exports wait, and so do
 * exports that were changed to persons, whose runs would not export events. An interval with an active run waits,
 * because that run counts too.
 */
export const isRecheckDue = `recheck.completed_after_ms < greatest($1::bigint, $2::bigint)
  and (${isCheckDue('$1', 1)} or ${isCheckDue('$2', 2)})
  and exists (select from exportd.batch_exports export
    where export.id = recheck.batch_export_id and not export.paused and not export.deleted
      and export.model = 'events')
  and not exists (select from exportd.batch_export_runs active
    where active.batch_export_id = recheck.batch_export_id
      and active.data_interval_start = recheck.data_interval_start
      and active.status in (${activeRunStatuses.map((status) => `'${status}'`).join(', ')}))`;

/** Milliseconds from an interval's end to its first and second re-check. */
export const recheckDelays = ({ recheckFirstMs, recheckSecondMs }: MaintenancePolicy): [number, number] => [
  recheckFirstMs,
  recheckSecondMs,
];

/** Reads the export's due re-checks, oldest interval first. If both checks of an interval are due, only the second. */
export async function readDueRechecks(
  pool: Pool,
  policy: MaintenancePolicy,
  batchExportId: string,
  limit: number,
): Promise<DueRecheck[]> {
  const { rows } = await pool.query<DueRecheck>(
    `select recheck.run_id, recheck.batch_export_id, run.team_id, run.model, run.config_version,
       recheck.data_interval_start, recheck.data_interval_end, case when ${isCheckDue('$2', 2)} then 2 else 1 end as check
     from exportd.rechecks recheck join exportd.batch_export_runs run on run.id = recheck.run_id
     where recheck.batch_export_id = $3 and ${isRecheckDue}
     order by recheck.data_interval_end limit $4`,
    [...recheckDelays(policy), batchExportId, limit],
  );
  return rows;
}

/** The outcome of a re-check. `not recorded` means that the state changed meanwhile. */
export type RecheckOutcome =
  | { readonly result: 'same' | 'fewer rows' | 'not recorded' }
  | { readonly result: 'exported again'; readonly command_id: string };

/**
 * Records a count of the source. More rows than in the manifest cause a retry of the run, stored as a command like a
 * user's. Fewer rows are only logged: rows deleted from the source must stay in the bucket. Nothing is recorded if the
 * interval has an active run or the export was paused, changed to another model or deleted.
 */
export async function recordRecheck(
  journal: Journal,
  recheck: DueRecheck,
  sourceRows: number,
): Promise<RecheckOutcome> {
  const { run_id, batch_export_id, check, data_interval_start: start, data_interval_end: end } = recheck;
  return journal.transaction(async (transaction): Promise<RecheckOutcome> => {
    const { connection } = transaction;
    const batchExport = (await transaction.lock(batchExportDecider, batch_export_id)).state();
    const mayRetry =
      batchExport.status === 'live' && !batchExport.paused && batchExport.definition.model === recheck.model;
    if (!mayRetry || (await findActiveRun(connection, batch_export_id, { start, end })) !== null)
      return { result: 'not recorded' };
    const run = await transaction.lock(runDecider, run_id);
    const rows = await findUncheckedRowCount(connection, run_id, check);
    if (rows === undefined) return { result: 'not recorded' };
    await run.append(`recheck:${check}`, [
      { type: 'RunRechecked', data: { check, rows, source_rows: sourceRows } },
    ]);
    if (rows === sourceRows) return { result: 'same' };
    const logWarning = (message: string) =>
      writeLogLine(connection, {
        team_id: recheck.team_id,
        batch_export_id,
        run_id,
        level: 'WARNING',
        message,
      });
    const counts = `source has ${sourceRows} rows for ${start} to ${end}, ${rows} were exported`;
    if (sourceRows < rows) {
      await logWarning(
        `${rows - sourceRows} rows were deleted from the source: ${counts}. The exported files are unchanged.`,
      );
      return { result: 'fewer rows' };
    }
    const command_id = deterministicId('recheck', run_id, check);
    await storeCommand(connection, {
      id: command_id,
      batch_export_id,
      team_id: recheck.team_id,
      name: 'retry',
      body: { run_id, reason: 'late_rows' },
      fingerprint: '',
      idempotency_key: null,
      user_id: null,
    });
    await logWarning(`${sourceRows - rows} late rows: ${counts}. Exporting the interval again.`);
    return { result: 'exported again', command_id };
  });
}

/** The row count of a manifest whose re-check is not recorded yet. */
async function findUncheckedRowCount(
  connection: Connection,
  runId: string,
  check: RecheckNumber,
): Promise<number | undefined> {
  const { rows } = await connection.query<{ rows: number }>(
    'select rows from exportd.rechecks where run_id = $1 and checks_done < $2',
    [runId, check],
  );
  return rows[0]?.rows;
}

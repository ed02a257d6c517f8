import { batchExportDecider } from '../domain/batch_export.ts';
import { activeRunStatuses, runDecider, type RunSpec } from '../domain/run.ts';
import type { RecheckNumber } from '../domain/maintenance_events.ts';
import { storeCommand } from '../journal/commands.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { deterministicId, type Journal } from '../journal/journal.ts';
import { writeLogLine } from '../journal/log_lines.ts';
import { findActiveRun } from './create_run.ts';
import type { MaintenancePolicy } from './policies.ts';

/** A Completed run whose interval has to be counted again. */
export interface DueRecheck extends Pick<
  RunSpec,
  'batch_export_id' | 'team_id' | 'model' | 'config_version' | 'data_interval_start' | 'data_interval_end'
> {
  readonly run_id: string;
  readonly check: RecheckNumber;
}

/** A count is due when its moment has come, and not at all when the run completed, and counted last, after it. */
const isCheckDue = (afterMs: '$1' | '$2', check: RecheckNumber): string =>
  `(recheck.checks_done < ${check} and recheck.completed_after_ms < ${afterMs}::bigint
    and recheck.data_interval_end <= clock_timestamp() - make_interval(secs => ${afterMs}::bigint / 1000.0))`;

/**
 * The condition on a row `recheck` that a count is due; $1 and $2 are `recheckDelays`. Paused exports wait, and so do
 * those that are of persons by now, whose runs would not export events again. An interval waits while a run of it is
 * active: that one counts by itself.
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

/** Milliseconds after an interval's end at which it is counted the first and the second time. */
export const recheckDelays = ({ recheckFirstMs, recheckSecondMs }: MaintenancePolicy): [number, number] => [
  recheckFirstMs,
  recheckSecondMs,
];

/** The export's intervals that have to be counted now, oldest first; where both counts are due, the second is enough. */
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

/** What a count led to: nothing, one more export of the interval, or, because things have moved on, no record at all. */
export type RecheckOutcome =
  | { readonly result: 'same' | 'fewer rows' | 'not recorded' }
  | { readonly result: 'exported again'; readonly command_id: string };

/**
 * Records a count of the source. More rows than in the manifest lead to a retry of the run, stored as a command like one
 * that a person sends. Fewer are only told: a source that drops old rows must not take them out of the bucket too.
 * Nothing is recorded when another run of the interval began since, or the export was paused, or deleted.
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
    const rows = await rowsAwaiting(connection, run_id, check);
    if (rows === undefined) return { result: 'not recorded' };
    await run.append(`recheck:${check}`, [
      { type: 'RunRechecked', data: { check, rows, source_rows: sourceRows } },
    ]);
    if (rows === sourceRows) return { result: 'same' };
    const warn = (message: string) =>
      writeLogLine(connection, {
        team_id: recheck.team_id,
        batch_export_id,
        run_id,
        level: 'WARNING',
        message,
      });
    const found = `the source now has ${sourceRows} records in ${start} to ${end}, but ${rows} were exported`;
    if (sourceRows < rows) {
      await warn(`${rows - sourceRows} rows are gone: ${found}. The bucket keeps what was exported.`);
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
    await warn(`${sourceRows - rows} late rows: ${found}. The interval is exported again.`);
    return { result: 'exported again', command_id };
  });
}

/** The rows that a manifest holds whose count is still to be recorded. */
async function rowsAwaiting(
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

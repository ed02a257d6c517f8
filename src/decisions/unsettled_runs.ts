import type { BarrierState, OpenBarrier, UnsettledBarrier } from '../domain/barrier.ts';
import { batchExportDecider, type Model } from '../domain/batch_export.ts';
import type { SettlingOutcome } from '../domain/comparison.ts';
import { runDecider } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import { type Journal, writeLogLine } from '../journal/journal.ts';
import { requestRepair } from './repairs.ts';
import { findActiveRun, hasActiveRun } from './active_runs.ts';
import { isExpiredInterval } from './expired_intervals.ts';

/** The run of a current manifest that was exported while transactions of the source were open. */
export interface UnsettledRun {
  readonly run_id: string;
  readonly barrier: UnsettledBarrier;
}

/** How many runs one read returns. */
const maxUnsettledRuns = 10_000;

/** Reads the runs whose barrier is blocked, in pages. Those of paused exports are included. */
export async function readUnsettledRuns(
  pool: Pool,
  after: UnsettledRun | undefined,
): Promise<UnsettledRun[]> {
  const { rows } = await pool.query<UnsettledRun>(
    `select run_id, barrier from exportd.unsettled_runs
     where barrier is not null and barrier ->> 'phase' <> 'open' and ($1::uuid is null or run_id > $1)
     order by run_id limit $2`,
    [after?.run_id, maxUnsettledRuns],
  );
  return rows;
}

/** Whether any run's barrier is blocked. */
export async function hasUnsettledRuns(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query(
    `select from exportd.unsettled_runs where barrier is not null and barrier ->> 'phase' <> 'open' limit 1`,
  );
  return rows.length > 0;
}

/**
 * Records that a barrier is in another phase. The phases of a barrier follow each other, so each is recorded once; what
 * is still blocked within a phase is read again. A state that another activity has replaced is not recorded.
 */
export async function recordBarrier(
  journal: Journal,
  { run_id, barrier: former }: UnsettledRun,
  barrier: UnsettledBarrier | OpenBarrier,
): Promise<void> {
  await journal.transaction(async (transaction) => {
    const run = await transaction.lock(runDecider, run_id);
    const state = run.state();
    if (state.status === 'Absent' || state.unsettled_barrier?.phase !== former.phase) return;
    await run.append(`barrier:${barrier.phase}`, [{ type: 'RunBarrierAdvanced', data: { barrier } }]);
  });
}

/** Whether a check has found a barrier in another phase. */
export const hasAdvanced = (
  { barrier }: UnsettledRun,
  found: BarrierState,
): found is UnsettledBarrier | OpenBarrier => found.phase !== 'settling' && found.phase !== barrier.phase;

/** A run whose barrier has opened since it was exported. */
export interface OpenedRun {
  readonly run_id: string;
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly model: Model;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  /** Whether the run was itself requested because the transactions of an earlier run had ended. */
  readonly is_repeated: boolean;
  /** Whether rules of the bucket may have deleted objects of the interval. */
  readonly is_expired: boolean;
}

/**
 * SQL condition: the interval of a row `unsettled` can be compared or exported again. Paused exports wait, and so do
 * exports that were changed to another model. An interval with an active run waits, because that run may settle.
 */
const canSettle = `unsettled.barrier ->> 'phase' = 'open'
  and exists (select from exportd.batch_exports export
    where export.id = unsettled.batch_export_id and not export.paused and not export.deleted
      and export.model = unsettled.model)
  and not ${hasActiveRun('unsettled')}`;

/** Reads the exports, except `excluded`, that have runs whose barrier has opened. */
export async function readExportsToSettle(
  pool: Pool,
  excluded: readonly string[],
  limit: number,
): Promise<{ readonly batch_export_id: string }[]> {
  const { rows } = await pool.query<{ batch_export_id: string }>(
    `select unsettled.batch_export_id from exportd.unsettled_runs unsettled
     where ${canSettle} and unsettled.batch_export_id <> all($1::uuid[])
     group by 1 order by min(unsettled.data_interval_end) limit $2`,
    [excluded, limit],
  );
  return rows;
}

/** Reads the export's runs whose barrier has opened, oldest interval first. */
export async function readOpenedRuns(pool: Pool, batchExportId: string, limit: number): Promise<OpenedRun[]> {
  const { rows } = await pool.query<OpenedRun>(
    `select unsettled.run_id, unsettled.batch_export_id, run.team_id, unsettled.model, unsettled.data_interval_start,
       unsettled.data_interval_end, unsettled.is_repeated, ${isExpiredInterval('unsettled')} as is_expired
     from exportd.unsettled_runs unsettled join exportd.batch_export_runs run on run.id = unsettled.run_id
     where unsettled.batch_export_id = $1 and ${canSettle}
     order by unsettled.data_interval_start limit $2`,
    [batchExportId, limit],
  );
  return rows;
}

/** What follows for an opened run: an outcome, after which a retry may still have to be requested. */
export interface SettlingDecision {
  readonly outcome: SettlingOutcome;
  /** Whether to request the retry here; false if a comparison has requested it. */
  readonly requests_retry: boolean;
}

/**
 * Records what followed when the transactions had ended. A retry is not requested, and nothing is recorded, if the interval
 * has an active run, or the export was paused, changed to another model or deleted.
 * @returns the id of the repair that exports the interval again, and whether anything was recorded
 */
export async function recordSettled(
  journal: Journal,
  opened: OpenedRun,
  { outcome, requests_retry }: SettlingDecision,
): Promise<{ readonly is_recorded: boolean; readonly repair_id: string | null }> {
  const { run_id, batch_export_id, data_interval_start: start, data_interval_end: end } = opened;
  return journal.transaction(async (transaction) => {
    const { connection } = transaction;
    const batchExport = (await transaction.lock(batchExportDecider, batch_export_id)).state();
    const mayRetry =
      batchExport.status === 'live' && !batchExport.paused && batchExport.definition.model === opened.model;
    const isPossible =
      !requests_retry ||
      (mayRetry && (await findActiveRun(connection, batch_export_id, { start, end })) === null);
    const { rows: waiting } = await connection.query(
      `select from exportd.unsettled_runs where run_id = $1 and barrier ->> 'phase' = 'open'`,
      [run_id],
    );
    if (waiting.length === 0 || !isPossible) return { is_recorded: false, repair_id: null };
    // Before the run is locked: locks are taken in one order.
    const repair_id =
      requests_retry && batchExport.status === 'live'
        ? await requestRepair(transaction, batch_export_id, { ...opened, start, end })
        : null;
    const run = await transaction.lock(runDecider, run_id);
    await run.append('settled', [{ type: 'RunSettled', data: { outcome } }]);
    // The comparison that requested the retry has logged why.
    if (outcome !== 'exported_again' || requests_retry)
      await writeLogLine(connection, {
        team_id: opened.team_id,
        batch_export_id,
        run_id,
        level: outcome === 'same_rows' ? 'INFO' : 'WARNING',
        message: `The transactions that were open when ${start} to ${end} was exported have ended. ${consequenceOf(opened, outcome)}`,
      });
    return { is_recorded: true, repair_id };
  });
}

function consequenceOf({ model, is_expired }: OpenedRun, outcome: SettlingOutcome): string {
  switch (outcome) {
    case 'same_rows':
      return 'The source has the rows that were exported.';
    case 'exported_again':
      return 'Exporting the interval again.';
    case 'no_late_rows':
      return 'Rows were deleted from the source. None arrived late, so the exported files are unchanged.';
    case 'source_expired':
      return 'The source has no rows left for it. The exported files are unchanged.';
    case 'not_exported_again':
      if (is_expired)
        return 'Rules of the bucket have deleted its objects, so it is not exported again. Backfill it to export it.';
      return model === 'persons'
        ? 'The interval was already exported again for this reason, and its files have no keys to compare, so it is not exported once more.'
        : 'The last run of the interval was held because of the same rows, so it is not exported again until the source changes.';
  }
}

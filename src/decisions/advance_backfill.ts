import {
  backfillDecider,
  type BackfillEvent,
  type BackfillState,
  decideCompletion,
  type ExistingBackfill,
  nextInParts,
  plannedRuns,
} from '../domain/backfill.ts';
import { batchExportDecider, type BatchExportState, type LiveBatchExport } from '../domain/batch_export.ts';
import { doneAt } from '../domain/coverage.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { isActiveStatus, type RunStatus } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import {
  deterministicId,
  type Journal,
  type JournalTransaction,
  type LockedStream,
} from '../journal/journal.ts';
import { countBackfillSlots, findActiveRun } from './active_runs.ts';
import { createRun } from './create_run.ts';
import { nextFailedInterval } from './failed_intervals.ts';
import { findIntervalFrom } from './ledger_boundaries.ts';
import type { NextInterval } from './next_run.ts';
import type { NextRun } from './next_run.ts';
import type { Policies } from './policies.ts';
import { hasRepairs, takeRepair } from './repairs.ts';
import { pauseFailingBackfill } from './auto_pause.ts';
import { readStartableRunsOfBackfill, type StartableRun } from './startable_runs.ts';

/** A backfill's stream, locked until the transaction ends. */
export type LockedBackfill = LockedStream<BackfillState, BackfillEvent>;

/** What a backfill workflow does next. */
export interface BackfillStep {
  /** True if the backfill creates no more runs and waits for none. */
  readonly ended: boolean;
  readonly status: BackfillState['status'];
  readonly start_runs: readonly StartableRun[];
  /** How many of `total_runs` intervals have a run, and how many of these have ended, for the details in the Temporal UI. */
  readonly runs_created: number;
  readonly runs_ended: number;
  readonly total_runs: number;
  /** When it is done at the pace so far, ISO 8601; null while that is not known or it does not run, and for a step of a run. */
  readonly done_at: string | null;
}

/** A run that takes the step of its backfill when it has ended. */
export interface EndedRunOfBackfill {
  readonly run_id: string;
  readonly batch_export_id: string;
  readonly status: RunStatus;
}

/**
 * Records the backfill's ended runs, creates as many new ones as its concurrency allows, and completes it at the end.
 * @param ended the run that takes the step, which then need not be read
 */
export async function advanceBackfill(
  journal: Journal,
  policies: Policies,
  backfillId: string,
  ended?: EndedRunOfBackfill,
): Promise<BackfillStep> {
  return journal.transaction(async (transaction): Promise<BackfillStep> => {
    const { batchExportId, created_at } =
      ended === undefined
        ? await readBackfill(transaction.connection, backfillId)
        : { batchExportId: ended.batch_export_id, created_at: null };
    if (batchExportId === undefined)
      return {
        ended: true,
        status: 'Absent',
        start_runs: [],
        runs_created: 0,
        runs_ended: 0,
        total_runs: 0,
        done_at: null,
      };
    const batchExport = await transaction.lock(batchExportDecider, batchExportId);
    const backfill = await transaction.lock(backfillDecider, backfillId);
    const { mayFail } =
      ended?.status === 'Completed' && isActiveIn(backfill, ended.run_id)
        ? await recordCompletedRun(backfill, ended.run_id)
        : await recordEndedRuns(transaction.connection, backfill);
    if (mayFail) await pauseFailingBackfill(transaction, policies.pauseAfterFailures, backfill);
    await createBackfillRuns(transaction, batchExport.state(), batchExportId, backfill, policies);
    await backfill.append('completed', await decideEnd(transaction.connection, batchExportId, backfill));
    const state = backfill.state();
    const { status } = state;
    const [runs_created, runs_ended, total_runs] =
      status === 'Absent'
        ? [0, 0, 0]
        : [state.runs_created, state.runs_created - state.active.length, plannedRuns(state.spec.plan)];
    const pace = created_at !== null &&
      status === 'Running' && { created_at, last_updated_at: transaction.now.toISOString() };
    return {
      ended: status === 'Completed' || status === 'Cancelled' || status === 'Absent',
      status,
      start_runs: await readStartableRunsOfBackfill(transaction.connection, backfillId),
      runs_created,
      runs_ended,
      total_runs,
      done_at: pace ? doneAt({ ...pace, finished: runs_ended, total: total_runs }) : null,
    };
  });
}

async function readBackfill(
  connection: Connection,
  backfillId: string,
): Promise<{ readonly batchExportId: string | undefined; readonly created_at: string | null }> {
  const { rows } = await connection.query<{ batch_export_id: string; created_at: string }>(
    'select batch_export_id, created_at from exportd.backfills where id = $1',
    [backfillId],
  );
  const [row] = rows;
  return { batchExportId: row?.batch_export_id, created_at: row?.created_at ?? null };
}

/** Completes a backfill that has nothing left. Only a repair has a queue. */
async function decideEnd(
  connection: Connection,
  batchExportId: string,
  backfill: LockedBackfill,
): Promise<BackfillEvent[]> {
  const state = backfill.state();
  const isRepair = state.status !== 'Absent' && state.spec.plan.kind === 'repair';
  return decideCompletion(state, isRepair && (await hasRepairs(connection, batchExportId)));
}

/**
 * Creates the backfill's next runs. If an interval already has an active run, the backfill waits for that run instead.
 * Due automatic retries of its runs take slots first; while the export is paused they wait and take none.
 */
export async function createBackfillRuns(
  transaction: JournalTransaction,
  batchExport: BatchExportState,
  batchExportId: string,
  backfill: LockedBackfill,
  policies: Policies,
): Promise<void> {
  const state = backfill.state();
  if (batchExport.status !== 'live' || state.status === 'Absent') return;
  const { plan, allow_shrink } = state.spec;
  // No user asked for a repair, so it waits like the schedule.
  if (plan.kind === 'repair' && batchExport.paused) return;
  const { connection, now } = transaction;
  const owner = { batch_export_id: batchExportId, backfill_id: backfill.id };
  const { free, due_retries } = await countBackfillSlots(connection, policies, owner, now);
  for (let slots = free - (batchExport.paused ? 0 : due_retries); slots > 0; slots -= 1) {
    const next = await findNextRun(connection, batchExport, backfill);
    if (!next) return;
    const { interval, run_id: existingRunId, purpose, definition, identity } = next;
    const runId = existingRunId ?? deterministicId('backfill', backfill.id, ...identity);
    if (existingRunId === null)
      await createRun(transaction, batchExport, {
        id: runId,
        batch_export_id: batchExportId,
        interval,
        purpose,
        allow_shrink,
        definition,
      });
    await backfill.append(`interval:${identity.join('/')}`, [
      { type: 'BackfillRunCreated', data: { run_id: runId, own: existingRunId === null, ...interval } },
    ]);
  }
}

/** The next run that a backfill needs; undefined if it needs none, or is not Running. */
async function findNextRun(
  connection: Connection,
  live: LiveBatchExport,
  backfill: LockedBackfill,
): Promise<NextRun | undefined> {
  const state = backfill.state();
  if (state.status !== 'Running') return undefined;
  if (state.spec.plan.kind === 'repair')
    return takeRepair(connection, live, { id: backfill.id, batch_export_id: state.spec.batch_export_id });
  const next = await findNextInterval(connection, state);
  const { plan, allow_shrink } = state.spec;
  // Who removes what the source has lost wants new files, also where rows were only changed.
  const isKept = plan.kind === 'range' && plan.rewrites !== true && !allow_shrink;
  const keeps = isKept && ({ keeps_unchanged: true } as const);
  const purpose = { kind: 'backfill', backfill_id: backfill.id, ...keeps } as const;
  return next && { ...next, purpose, identity: [next.interval.start] };
}

/**
 * The next interval of a backfill, and the run that it waits for instead of creating one: the active run of the interval.
 * A backfill of failed runs also takes one that was created after its request, whatever became of it.
 */
async function findNextInterval(
  connection: Connection,
  { spec: { batch_export_id, plan }, remaining }: ExistingBackfill,
): Promise<NextInterval | undefined> {
  if (!remaining) return undefined;
  const activeRunOf = async (interval: DataInterval): Promise<NextInterval> => ({
    interval,
    run_id: await findActiveRun(connection, batch_export_id, interval),
  });
  switch (plan.kind) {
    case 'range': {
      const source = { batchExportId: batch_export_id, revisions: plan.revisions };
      const start = plan.parts ? nextInParts(plan.parts, remaining.start) : remaining.start;
      if (start === null) return undefined;
      return activeRunOf(await findIntervalFrom(connection, source, start));
    }
    case 'retry':
      return activeRunOf(plan.interval);
    case 'failed':
      return nextFailedInterval(connection, batch_export_id, plan.failed, remaining);
    case 'repair':
      return undefined;
  }
}

const isActiveIn = (backfill: LockedBackfill, runId: string): boolean => {
  const state = backfill.state();
  return state.status !== 'Absent' && state.active.includes(runId);
};

/** Records that a run has completed. The others that end record themselves, or the workflow of the backfill does. */
async function recordCompletedRun(
  backfill: LockedBackfill,
  runId: string,
): Promise<{ readonly mayFail: false }> {
  await backfill.append(`ended:${runId}`, [
    { type: 'BackfillRunEnded', data: { run_id: runId, status: 'Completed' } },
  ]);
  return { mayFail: false };
}

/**
 * Records which runs have ended.
 * @returns `mayFail`: false if the last run that ended did not fail, so that no streak of failures can pause the backfill
 */
async function recordEndedRuns(
  connection: Connection,
  backfill: LockedBackfill,
): Promise<{ readonly mayFail: boolean }> {
  const state = backfill.state();
  if (state.status === 'Absent' || state.active.length === 0) return { mayFail: true };
  const { rows } = await connection.query<{ id: string; status: RunStatus; last_failed: boolean | null }>(
    `select id, status, (
       select last.status = 'Failed' from exportd.batch_export_runs last
       where last.backfill_id = $2 and last.status in ('Completed', 'Failed') and not last.held
       order by last.finished_at desc, last.position desc limit 1) as last_failed
     from exportd.batch_export_runs where id = any($1)`,
    [state.active, backfill.id],
  );
  for (const run of rows)
    if (!isActiveStatus(run.status))
      await backfill.append(`ended:${run.id}`, [
        { type: 'BackfillRunEnded', data: { run_id: run.id, status: run.status } },
      ]);
  return { mayFail: rows[0]?.last_failed !== false };
}

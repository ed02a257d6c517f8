import {
  backfillDecider,
  type BackfillEvent,
  type BackfillState,
  decideCompletion,
  nextBackfillInterval,
} from '../domain/backfill.ts';
import { batchExportDecider, type BatchExportState } from '../domain/batch_export.ts';
import { decideContinuation, runDecider, RunEnded } from '../domain/run.ts';
import { isActiveStatus, type RunStatus } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import {
  deterministicId,
  type Journal,
  type JournalTransaction,
  type LockedStream,
} from '../journal/journal.ts';
import { pauseFailingBackfill } from './auto_pause.ts';
import {
  countDueRetries,
  countFreeSlots,
  createRun,
  findActiveRun,
  readStartableRuns,
  type StartableRun,
  type Policies,
} from './create_run.ts';
import { nextFailedInterval, type NextInterval } from './retries.ts';

/** A backfill's stream, locked until the transaction ends. */
type LockedBackfill = LockedStream<BackfillState, BackfillEvent>;

/** What a backfill workflow does next. */
export interface BackfillStep {
  /** The backfill's export; empty if there is no such backfill. */
  readonly batch_export_id: string;
  /** True if the backfill creates no more runs and waits for none. */
  readonly ended: boolean;
  readonly status: BackfillState['status'];
  readonly start_runs: readonly StartableRun[];
  /** How many of `total_runs` intervals have a run, for the summary in the Temporal UI. */
  readonly runs_created: number;
  readonly total_runs: number;
  /** Whether the step created notifications. */
  readonly has_new_deliveries: boolean;
}

/** Records the backfill's ended runs, creates as many new ones as its concurrency allows, and completes it at the end. */
export async function advanceBackfill(
  journal: Journal,
  policies: Policies,
  backfillId: string,
): Promise<BackfillStep> {
  const step = await journal.transaction(async (transaction): Promise<Omit<BackfillStep, 'start_runs'>> => {
    const { rows } = await transaction.connection.query<{ batch_export_id: string }>(
      'select batch_export_id from exportd.backfills where id = $1',
      [backfillId],
    );
    const batchExportId = rows[0]?.batch_export_id;
    if (batchExportId === undefined)
      return {
        batch_export_id: '',
        ended: true,
        status: 'Absent',
        runs_created: 0,
        total_runs: 0,
        has_new_deliveries: false,
      };
    const batchExport = await transaction.lock(batchExportDecider, batchExportId);
    const backfill = await transaction.lock(backfillDecider, backfillId);
    await recordEndedRuns(transaction.connection, backfill);
    const hasNewDeliveries = await pauseFailingBackfill(transaction, policies.pauseAfterFailures, backfill);
    await createBackfillRuns(transaction, batchExport.state(), batchExportId, backfill, policies);
    await backfill.append('completed', decideCompletion(backfill.state()));
    const state = backfill.state();
    return {
      batch_export_id: batchExportId,
      ended: state.status === 'Completed' || state.status === 'Cancelled' || state.status === 'Absent',
      status: state.status,
      runs_created: state.status === 'Absent' ? 0 : state.runs_created,
      total_runs: state.status === 'Absent' ? 0 : state.spec.total_runs,
      has_new_deliveries: hasNewDeliveries,
    };
  });
  return { ...step, start_runs: await readStartableRuns(journal.pool, { backfill_id: backfillId }) };
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
  if (batchExport.status !== 'live') return;
  const { connection, now } = transaction;
  const state = backfill.state();
  const allowShrink = state.status !== 'Absent' && state.spec.allow_shrink;
  const definition = state.status === 'Absent' ? undefined : state.spec.definition;
  const owner = { batch_export_id: batchExportId, backfill_id: backfill.id };
  const dueRetryCount = batchExport.paused ? 0 : await countDueRetries(connection, backfill.id, now);
  for (
    let slots = (await countFreeSlots(connection, policies, owner)) - dueRetryCount;
    slots > 0;
    slots -= 1
  ) {
    const next = await findNextInterval(connection, batchExportId, backfill.state());
    if (!next) return;
    const { interval, run_id: existingRunId } = next;
    const runId = existingRunId ?? deterministicId('backfill', backfill.id, interval.start);
    if (existingRunId === null)
      await createRun(transaction, batchExport, {
        id: runId,
        batch_export_id: batchExportId,
        interval,
        backfill_id: backfill.id,
        retry_number: 0,
        allow_shrink: allowShrink,
        definition,
      });
    await backfill.append(`interval:${interval.start}`, [
      { type: 'BackfillRunCreated', data: { run_id: runId, own: existingRunId === null, ...interval } },
    ]);
  }
}

/**
 * The next interval of a backfill, and the run that it waits for instead of creating one: the active run of the interval.
 * A backfill of failed runs also takes one that was created after its request, whatever became of it.
 */
async function findNextInterval(
  connection: Connection,
  batchExportId: string,
  state: BackfillState,
): Promise<NextInterval | undefined> {
  const interval = nextBackfillInterval(state);
  if (state.status === 'Absent' || !interval) return undefined;
  const { failed_runs, last_end } = state.spec;
  return failed_runs
    ? nextFailedInterval(connection, batchExportId, failed_runs, {
        start: state.created_until,
        end: last_end,
      })
    : { interval, run_id: await findActiveRun(connection, batchExportId, interval) };
}

async function recordEndedRuns(connection: Connection, backfill: LockedBackfill): Promise<void> {
  const state = backfill.state();
  if (state.status === 'Absent' || state.active.length === 0) return;
  const { rows } = await connection.query<{ id: string; status: RunStatus }>(
    'select id, status from exportd.batch_export_runs where id = any($1)',
    [state.active],
  );
  for (const run of rows)
    if (!isActiveStatus(run.status))
      await backfill.append(`ended:${run.id}`, [
        { type: 'BackfillRunEnded', data: { run_id: run.id, status: run.status } },
      ]);
}

/** The run that continues, the row count of its interval, and the number of ranges. */
export interface ContinuedRun {
  readonly run_id: string;
  readonly rows: number;
  readonly ranges: number;
}

/**
 * Ends a run as ContinuedAsNew and creates the run that resumes at its cursor, in one transaction. Backfills that wait
 * for the ended run now wait for the new one. Idempotent.
 * @throws RunEnded when the run has another terminal status.
 */
export async function continueRun(journal: Journal, runId: string): Promise<ContinuedRun> {
  const nextRunId = deterministicId('continue', runId);
  return journal.transaction(async (transaction) => {
    const { connection } = transaction;
    const found = await connection.query<{ batch_export_id: string; cursor: string | null }>(
      'select batch_export_id, cursor from exportd.batch_export_runs where id = $1',
      [runId],
    );
    const [row] = found.rows;
    if (!row) throw new RunEnded('Absent');
    // Backfills start to wait for a run under the export's lock, so none can be added before this transaction commits.
    await transaction.lock(batchExportDecider, row.batch_export_id);
    const waitingBackfills = await connection.query<{ backfill_id: string }>(
      'select backfill_id from exportd.backfill_runs where run_id = $1 and status is null order by backfill_id',
      [runId],
    );
    const backfills: LockedBackfill[] = [];
    for (const { backfill_id } of waitingBackfills.rows)
      backfills.push(await transaction.lock(backfillDecider, backfill_id));
    const run = await transaction.lock(runDecider, runId);
    const state = run.state();
    if (state.status === 'Absent') throw new RunEnded('Absent');
    const continued = {
      run_id: nextRunId,
      rows: state.records_total_count ?? 0,
      ranges: state.ranges.length,
    };
    if (state.status === 'ContinuedAsNew') return continued;
    const ids = { run_id: runId, next_run_id: nextRunId, cursor: row.cursor ?? '' };
    const { closed: closedEvent, created: createdEvent } = decideContinuation(state, ids);
    // In this order, because an interval has at most one active run.
    await run.append('ended', [closedEvent]);
    await (await transaction.lock(runDecider, nextRunId)).append('created', [createdEvent]);
    for (const backfill of backfills)
      await backfill.append(`continued:${runId}`, [
        { type: 'BackfillRunContinued', data: { run_id: runId, next_run_id: nextRunId } },
      ]);
    return continued;
  });
}

import { isDeepStrictEqual } from 'node:util';
import { haveSamePlace, readPublicConfig, selectionOfConfig } from '../destination/config_versions.ts';
import {
  backfillDecider,
  type BackfillEvent,
  type BackfillRange,
  type BackfillSpec,
  type BackfillState,
  decideBackfill,
  decideBackfillControl,
  decideCompletion,
  decideRetry,
  decideRetryOfFailed,
  type ExistingBackfill,
  plannedRuns,
  requireBackfillRange,
} from '../domain/backfill.ts';
import {
  batchExportDecider,
  type BatchExportEvent,
  type BatchExportState,
  type LiveBatchExport,
  requireLive,
} from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { decideContinuation, runDecider, RunEnded } from '../domain/run.ts';
import { isActiveStatus, type RunDefinition, type RunPurpose, type RunStatus } from '../domain/run_state.ts';
import type { CommandOutcome } from '../journal/commands.ts';
import type { Connection } from '../journal/database.ts';
import {
  deterministicId,
  type Journal,
  type JournalTransaction,
  type LockedStream,
} from '../journal/journal.ts';
import {
  cancelUnwantedRetries,
  countDueRetries,
  countFreeSlots,
  createRun,
  findActiveRun,
  findFailedIntervals,
  findIntervalFrom,
  hasActiveRun,
  nextFailedInterval,
  type NextInterval,
  type Policies,
  readStartableRuns,
  type StartableRun,
  toRecordedRange,
} from './create_run.ts';
import { cancelRuns, pauseFailingBackfill } from './run_outcomes.ts';

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
    await backfill.append(
      'completed',
      decideCompletion(backfill.state(), await hasRepairs(transaction.connection, batchExportId)),
    );
    const state = backfill.state();
    return {
      batch_export_id: batchExportId,
      ended: state.status === 'Completed' || state.status === 'Cancelled' || state.status === 'Absent',
      status: state.status,
      runs_created: state.status === 'Absent' ? 0 : state.runs_created,
      total_runs: state.status === 'Absent' ? 0 : plannedRuns(state.spec.plan),
      has_new_deliveries: hasNewDeliveries,
    };
  });
  return { ...step, start_runs: await readStartableRuns(journal.pool, { backfill_id: backfillId }) };
}

/**
 * Creates the backfill's next runs. If an interval already has an active run, the backfill waits for that run instead.
 * Due automatic retries of its runs take slots first; while the export is paused they wait and take none.
 */
async function createBackfillRuns(
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
  const dueRetryCount = batchExport.paused ? 0 : await countDueRetries(connection, backfill.id, now);
  for (
    let slots = (await countFreeSlots(connection, policies, owner)) - dueRetryCount;
    slots > 0;
    slots -= 1
  ) {
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

/** The next run of a backfill. */
interface NextRun extends NextInterval {
  readonly purpose: RunPurpose;
  /** The model and config, if not the export's current ones. */
  readonly definition?: RunDefinition | undefined;
  /** Distinguishes it from the other runs of the backfill: the start of its interval, and when a repair was requested. */
  readonly identity: readonly string[];
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
  const purpose = { kind: 'backfill', backfill_id: backfill.id } as const;
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
      return activeRunOf(await findIntervalFrom(connection, source, remaining.start));
    }
    case 'retry':
      return activeRunOf(plan.interval);
    case 'failed':
      return nextFailedInterval(connection, batch_export_id, plan.failed, remaining);
    case 'repair':
      return undefined;
  }
}

/**
 * Takes the interval that has waited longest from the queue of an export's repair. One with an active run stays there; one
 * that has another manifest by now needs no repair.
 */
async function takeRepair(
  connection: Connection,
  live: LiveBatchExport,
  { id, batch_export_id }: { readonly id: string; readonly batch_export_id: string },
): Promise<NextRun | undefined> {
  for (;;) {
    const { rows } = await connection.query<
      DataInterval & { run_id: string; requested_at: string; is_current: boolean }
    >(
      `delete from exportd.interval_repairs repair using (
         select next.* from exportd.interval_repairs next
         where next.batch_export_id = $1 and not ${hasActiveRun('next')}
         order by next.requested_at, next.data_interval_start limit 1) taken
       where repair.batch_export_id = taken.batch_export_id and repair.data_interval_start = taken.data_interval_start
         and repair.data_interval_end = taken.data_interval_end
       returning repair.data_interval_start as start, repair.data_interval_end as end, repair.run_id,
         repair.requested_at::text as requested_at, exists (
         select from exportd.intervals interval where interval.batch_export_id = repair.batch_export_id
           and interval.data_interval_start = repair.data_interval_start
           and interval.data_interval_end = repair.data_interval_end
           and interval.manifest_run_id = repair.run_id) as is_current`,
      [batch_export_id],
    );
    const [taken] = rows;
    if (!taken) return undefined;
    if (!taken.is_current) continue;
    const { start, end, run_id, requested_at } = taken;
    const definition = await definitionToKeep(connection, live, batch_export_id, run_id);
    return {
      interval: { start, end },
      run_id: null,
      purpose: { kind: 'repair', backfill_id: id, definition: definition ? 'kept' : 'current' },
      definition,
      identity: [start, requested_at],
    };
  }
}

/** Whether the repair of an export has intervals left. */
async function hasRepairs(connection: Connection, batchExportId: string): Promise<boolean> {
  const { rows } = await connection.query(
    'select from exportd.interval_repairs where batch_export_id = $1 limit 1',
    [batchExportId],
  );
  return rows.length > 0;
}

/** An interval that exportd exports again by itself. */
interface RepairRequest extends DataInterval {
  readonly team_id: number;
  /** The run of the manifest that lacks rows. */
  readonly run_id: string;
}

/**
 * Adds an interval to the queue of its export's repair, and starts that unless it is running. An export has one, whatever
 * the number of its intervals with late rows: a command and a backfill for each would delay what people ask for. The
 * caller holds the export's lock, and no run's.
 * @returns the id of the repair, whose workflow is to be started or woken
 */
export async function requestRepair(
  transaction: JournalTransaction,
  batchExportId: string,
  { team_id, run_id, start, end }: RepairRequest,
): Promise<string> {
  const { connection } = transaction;
  await connection.query(
    `insert into exportd.interval_repairs (batch_export_id, data_interval_start, data_interval_end, run_id)
     values ($1, $2, $3, $4)
     on conflict (batch_export_id, data_interval_start, data_interval_end) do update set run_id = excluded.run_id`,
    [batchExportId, start, end, run_id],
  );
  const running = await findRepair(connection, batchExportId);
  if (running) return running.id;
  const id = deterministicId('repair', run_id, transaction.now.toISOString());
  const repair = await transaction.lock(backfillDecider, id);
  const spec = {
    batch_export_id: batchExportId,
    team_id,
    start_at: start,
    end_at: end,
    allow_shrink: false,
    plan: { kind: 'repair' } as const,
  };
  await repair.append('requested', [{ type: 'BackfillStarted', data: spec }]);
  return repair.id;
}

/** The unfinished repair of an export. */
async function findRepair(
  connection: Connection,
  batchExportId: string,
): Promise<{ readonly id: string; readonly status: string } | undefined> {
  const { rows } = await connection.query<{ id: string; status: string }>(
    `select id, status from exportd.backfills where batch_export_id = $1 and kind = 'repair' and finished_at is null`,
    [batchExportId],
  );
  return rows[0];
}

/** Empties the queue of an export's repair. */
export const endRepairs = (connection: Connection, batchExportId: string): Promise<unknown> =>
  connection.query('delete from exportd.interval_repairs where batch_export_id = $1', [batchExportId]);

/** Continues the repair of an export that was unpaused. @returns its id */
export async function continueRepair({
  transaction,
  batchExport,
  cause,
}: CommandContext): Promise<readonly string[]> {
  const repair = await findRepair(transaction.connection, batchExport.id);
  if (!repair) return [];
  const stream = await transaction.lock(backfillDecider, repair.id);
  await stream.append(cause, decideBackfillControl(stream.state(), 'unpause'));
  return [repair.id];
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

/** What deciding a command requires. */
export interface CommandContext {
  readonly transaction: JournalTransaction;
  readonly batchExport: LockedStream<BatchExportState, BatchExportEvent>;
  readonly policies: Policies;
  readonly commandId: string;
  /** The cause under which the command's events are appended. */
  readonly cause: string;
}

/** What the workflow has to do outside the database after a command. */
export interface CommandEffect {
  /** False when the command changed nothing. */
  readonly applied: boolean;
  readonly outcome: CommandOutcome;
  /** Backfills whose workflow has to be started or woken. */
  readonly wake_backfills: readonly string[];
  /** Runs whose workflow has to be cancelled. */
  readonly cancel_runs: readonly string[];
}

/** Creates an effect; without `more`, one that is limited to the database. */
export const createEffect = (applied: boolean, more: Partial<CommandEffect> = {}): CommandEffect => ({
  applied,
  outcome: {},
  wake_backfills: [],
  cancel_runs: [],
  ...more,
});

/**
 * The model and config with which exportd itself exports the interval of a run again. A changed model, selection or place
 * is not applied to what was exported before until a person asks for it, so the run's own are kept: readers of an archive
 * would lose an interval out of its middle. Undefined for the current ones, if they write the same rows to the same place.
 */
async function definitionToKeep(
  connection: Connection,
  { definition }: Pick<LiveBatchExport, 'definition'>,
  batchExportId: string,
  runId: string,
): Promise<RunDefinition | undefined> {
  const { rows } = await connection.query<RunDefinition>(
    'select model, config_version from exportd.batch_export_runs where id = $1',
    [runId],
  );
  const [exported] = rows;
  if (!exported) return undefined;
  const { model, config_version } = definition;
  if (exported.model === model) {
    if (exported.config_version === config_version) return undefined;
    const read = (version: number) => readPublicConfig(connection, batchExportId, version);
    const [before, current] = [await read(exported.config_version), await read(config_version)];
    if (
      isDeepStrictEqual(selectionOfConfig(before), selectionOfConfig(current)) &&
      haveSamePlace(before, current)
    )
      return undefined;
  }
  return exported;
}

/** First key of the advisory lock on a project's backfills; the second is the project's id. */
const projectBackfillsLock = 5_140_518;

/** Requests a backfill of a range and creates its first runs. */
export async function applyBackfill(
  context: CommandContext,
  body: { start_at: string; end_at: string; allow_shrink?: boolean | undefined },
): Promise<CommandEffect> {
  const { batchExport, commandId, cause } = context;
  const request = {
    backfill_id: deterministicId('command', commandId, 'backfill'),
    start_at: new Date(body.start_at).toISOString(),
    end_at: new Date(body.end_at).toISOString(),
    allow_shrink: body.allow_shrink ?? false,
  };
  const bounded = { ...request, ...backfillLimits(context) };
  await batchExport.append(cause, decideBackfill(batchExport.state(), bounded));
  const range = requireBackfillRange(requireLive(batchExport.state()), bounded);
  return startBackfill(context, request, range);
}

/** Retries a run: creates a backfill of its interval. */
export async function applyRetry(
  context: CommandContext,
  body: { run_id: string; allow_shrink?: boolean | undefined },
): Promise<CommandEffect> {
  const { batchExport, transaction, commandId, cause } = context;
  const { rows } = await transaction.connection.query<{ start: string; end: string }>(
    `select data_interval_start as start, data_interval_end as end from exportd.batch_export_runs
     where id = $1 and batch_export_id = $2`,
    [body.run_id, batchExport.id],
  );
  const [interval] = rows;
  if (!interval) throw new CommandRejected('not_found', 'Not found.');
  const backfillId = deterministicId('command', commandId, 'backfill');
  const allow_shrink = body.allow_shrink ?? false;
  await batchExport.append(
    cause,
    decideRetry(batchExport.state(), {
      backfill_id: backfillId,
      run_id: body.run_id,
      allow_shrink,
      interval,
      active_run_id: await findActiveRun(transaction.connection, batchExport.id, interval),
    }),
  );
  await requireBackfillCapacity(context);
  return createBackfill(context, {
    backfill_id: backfillId,
    start_at: interval.start,
    end_at: interval.end,
    allow_shrink,
    plan: { kind: 'retry', run_id: body.run_id, interval },
  });
}

/** The limits on a range that a command requests. */
export const backfillLimits = ({ transaction, policies }: CommandContext) => ({
  now: transaction.now,
  maxIntervals: policies.maxBackfillIntervals,
});

type BackfillRequest = Pick<BackfillSpec, 'start_at' | 'end_at' | 'allow_shrink'> & {
  readonly backfill_id: string;
};

/** Creates a requested backfill over the whole intervals of its range, if the project has capacity. */
export async function startBackfill(
  context: CommandContext,
  request: BackfillRequest,
  range: BackfillRange,
): Promise<CommandEffect> {
  const { batchExport, transaction } = context;
  await requireBackfillCapacity(context);
  const { revisions } = requireLive(batchExport.state());
  const source = { batchExportId: batchExport.id, revisions };
  const { start_at, end_at } = request;
  const recorded = await toRecordedRange(transaction.connection, source, { ...range, start_at, end_at });
  return createBackfill(context, { ...request, plan: { kind: 'range', range: recorded, revisions } });
}

/** Creates a backfill and its first runs, whatever the number of those that the project has. */
async function createBackfill(
  { batchExport, transaction, policies, cause }: CommandContext,
  { backfill_id, ...request }: BackfillRequest & Pick<BackfillSpec, 'plan'>,
): Promise<CommandEffect> {
  const live = requireLive(batchExport.state());
  const backfill = await transaction.lock(backfillDecider, backfill_id);
  const spec = { batch_export_id: batchExport.id, team_id: live.team_id, ...request };
  await backfill.append(cause, [{ type: 'BackfillStarted', data: spec }]);
  await createBackfillRuns(transaction, live, batchExport.id, backfill, policies);
  const state = backfill.state();
  const run_id = state.status === 'Absent' ? undefined : state.active[0];
  const ofRetry = request.plan.kind === 'retry' && run_id !== undefined && { run_id };
  return createEffect(true, { outcome: { backfill_id, ...ofRetry }, wake_backfills: [backfill_id] });
}

/**
 * Rejects a backfill above the project's limit. Those of failed runs do not count: there is at most one for each request
 * and export. Neither do repairs, which no user requested. Exports of a project are decided concurrently, so it counts under
 * a lock of the project. In the lock order this lock is between those of an export and of its backfills.
 */
async function requireBackfillCapacity(context: CommandContext): Promise<void> {
  const { team_id: teamId } = requireLive(context.batchExport.state());
  const { connection } = context.transaction;
  await connection.query('select pg_advisory_xact_lock($1, $2)', [projectBackfillsLock, teamId]);
  const { rows } = await connection.query<{ active: number }>(
    `select count(*) as active from exportd.backfills where team_id = $1 and finished_at is null and kind in ('range', 'retry')`,
    [teamId],
  );
  const active = rows[0]?.active ?? 0;
  if (active >= context.policies.maxBackfillsPerProject)
    throw new CommandRejected(
      'too_many_concurrent_backfills',
      `This project already has ${active} unfinished backfills (EXPORTD_MAX_BACKFILLS_PER_PROJECT). Wait for some to finish or cancel them.`,
    );
}

/**
 * Pauses, unpauses or cancels a backfill. Cancelling also cancels its active runs and automatic retries, unless the
 * schedule or another backfill wants them too: the last of them to be cancelled ends them.
 */
export async function applyBackfillControl(
  context: CommandContext,
  body: { backfill_id: string },
  command: 'pause' | 'unpause' | 'cancel',
): Promise<CommandEffect> {
  const { transaction, batchExport, cause } = context;
  requireLive(batchExport.state());
  const { rows } = await transaction.connection.query(
    'select from exportd.backfills where id = $1 and batch_export_id = $2',
    [body.backfill_id, batchExport.id],
  );
  if (rows.length === 0) throw new CommandRejected('not_found', 'Not found.');
  const backfill = await transaction.lock(backfillDecider, body.backfill_id);
  const events = decideBackfillControl(backfill.state(), command);
  await backfill.append(cause, events);
  if (command !== 'cancel' || events.length === 0)
    return createEffect(events.length > 0, { wake_backfills: [body.backfill_id] });
  const cancellation = { cause, reason: 'The backfill was cancelled.' };
  // Its queue ends with a repair. Later comparisons find what is still late, and start another one.
  const state = backfill.state();
  if (state.status !== 'Absent' && state.spec.plan.kind === 'repair')
    await endRepairs(transaction.connection, batchExport.id);
  const cancelled = await cancelRuns(transaction, batchExport.id, 'unwanted', cancellation);
  await cancelUnwantedRetries(transaction, batchExport.id, cancellation);
  return createEffect(true, { wake_backfills: [body.backfill_id], cancel_runs: cancelled });
}

/**
 * Re-exports every interval whose latest run failed (since `since`, if given), with one backfill for all of them: they are
 * many after an outage, and the limits on ranges that a user chooses do not apply to them. Runs that are held for a
 * decision are left out.
 */
export async function applyRetryFailed(
  context: CommandContext,
  body: { since?: string | null },
): Promise<CommandEffect> {
  const { batchExport, transaction, commandId, cause } = context;
  const failed = { since: body.since ?? null, until: transaction.now.toISOString() };
  const range = await findFailedIntervals(transaction.connection, batchExport.id, failed);
  const backfill_id = deterministicId('command', commandId, 'backfill');
  const runs = range?.intervals ?? 0;
  await batchExport.append(cause, decideRetryOfFailed(batchExport.state(), { backfill_id, runs, ...failed }));
  if (!range) return createEffect(false, { outcome: { runs } });
  const effect = await createBackfill(context, {
    backfill_id,
    start_at: range.start,
    end_at: range.end,
    allow_shrink: false,
    plan: { kind: 'failed', failed, range },
  });
  return { ...effect, outcome: { ...effect.outcome, runs } };
}

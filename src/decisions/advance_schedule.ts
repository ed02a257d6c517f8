import { commandIdOf, isId, type ReceivedSignal } from '../contract/workflow_inputs.ts';
import { backfillDecider, decideBackfillControl, requireBackfillRange } from '../domain/backfill.ts';
import {
  batchExportDecider,
  type BatchExportDefinition,
  type BatchExportEvent,
  type BatchExportState,
  decideCreate,
  decideDelete,
  decideNextInterval,
  decidePause,
  decideUnpause,
  decideUpdate,
  requireLive,
  type ScheduleDecision,
} from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { decideCancel, runDecider } from '../domain/run.ts';
import {
  type Command,
  commandBodySchemas,
  lockPendingCommand,
  readPendingCommands,
  recordCommandOutcome,
} from '../journal/commands.ts';
import { isTransient, type Pool } from '../journal/database.ts';
import {
  deterministicId,
  type Journal,
  type JournalTransaction,
  type LockedStream,
  writeLogLine,
} from '../journal/journal.ts';
import { inTraceOf } from '../tracing/spans.ts';
import {
  applyBackfill,
  applyBackfillControl,
  applyRetry,
  applyRetryFailed,
  backfillLimits,
  continueRepair,
  type CommandContext,
  type CommandEffect,
  createEffect,
  startBackfill,
} from './backfills.ts';
import {
  countFreeSlots,
  createDueRetries,
  createRun,
  findActiveRun,
  findIntervalFrom,
  type Policies,
  readRuns,
  readStartableRuns,
  readUnstartedBackfills,
  type StartableRun,
} from './create_run.ts';
import { affectsDestination, checkDestination } from './destination_rules.ts';
import { endComparisons } from './comparisons.ts';
import { cleanUpTimeOf, removeSecrets } from './remove_secrets.ts';
import { dropNotifications } from './notifications.ts';
import { cancelRuns, pauseFailingExport } from './run_outcomes.ts';

/** Creates the export and checks its destination. */
async function applyCreate(
  context: CommandContext,
  body: { team_id: number; definition: BatchExportDefinition; paused: boolean },
): Promise<CommandEffect> {
  const { batchExport, transaction, cause } = context;
  await batchExport.append(cause, decideCreate(batchExport.state(), { ...body, now: transaction.now }));
  const created = batchExport.state();
  if (created.status === 'live') await checkDestination(transaction.connection, batchExport.id, created);
  return createEffect(true);
}

/** Changes the definition. `paused` in the body pauses or unpauses like the dedicated commands. */
async function applyUpdate(
  context: CommandContext,
  body: {
    changes: Partial<BatchExportDefinition>;
    paused?: boolean;
    last_paused_at?: string | null;
  },
): Promise<CommandEffect> {
  const { batchExport, transaction, cause } = context;
  // Before the change, because the interval that contains now is one of the old definition.
  const pauseContext = { ...context, cause: `${cause}/paused` };
  const pauseEffect =
    body.paused === undefined
      ? createEffect(false)
      : await (body.paused ? applyPause(pauseContext, {}) : applyUnpause(pauseContext, {}));
  const before = batchExport.state();
  const updated = decideUpdate(before, { changes: body.changes, now: transaction.now });
  await batchExport.append(cause, updated);
  const after = batchExport.state();
  if (
    before.status === 'live' &&
    after.status === 'live' &&
    affectsDestination(before.definition, after.definition)
  )
    await checkDestination(transaction.connection, batchExport.id, after);
  if (body.last_paused_at !== undefined)
    await batchExport.append(`${cause}/last_paused_at`, [
      { type: 'BatchExportLastPausedAtSet', data: { last_paused_at: body.last_paused_at } },
    ]);
  const applied = updated.length > 0 || pauseEffect.applied || body.last_paused_at !== undefined;
  return { ...pauseEffect, applied };
}

async function applyPause(
  context: CommandContext,
  body: { last_paused_at?: string | null | undefined },
): Promise<CommandEffect> {
  const events = decidePause(context.batchExport.state(), { last_paused_at: body.last_paused_at ?? null });
  await context.batchExport.append(context.cause, events);
  return createEffect(events.length > 0);
}

/** Unpauses the export. `backfill: true` also backfills the intervals that were missed during the pause. */
async function applyUnpause(
  context: CommandContext,
  body: { backfill?: boolean | undefined },
): Promise<CommandEffect> {
  const { batchExport, transaction, commandId, cause } = context;
  const backfillId = body.backfill === true ? deterministicId('command', commandId, 'backfill') : null;
  const events = decideUnpause(batchExport.state(), { now: transaction.now, backfill_id: backfillId });
  await batchExport.append(cause, events);
  const repairs = events.length > 0 ? await continueRepair(context) : [];
  const requested = events.find((event) => event.type === 'BackfillRequested');
  if (!requested) return createEffect(events.length > 0, { wake_backfills: repairs });
  const request = { ...requested.data, ...backfillLimits(context) };
  const range = requireBackfillRange(requireLive(batchExport.state()), request, 'backfill');
  const effect = await startBackfill(context, requested.data, range);
  return { ...effect, wake_backfills: [...effect.wake_backfills, ...repairs] };
}

/**
 * Deletes the export, cancels its backfills and active runs, and removes its secrets unless objects are left to delete.
 * Published objects stay in the bucket.
 */
async function applyDelete(context: CommandContext): Promise<CommandEffect> {
  const { transaction, batchExport, policies, cause } = context;
  const events = decideDelete(batchExport.state());
  await batchExport.append(cause, events);
  if (events.length === 0) return createEffect(false);
  const { rows } = await transaction.connection.query<{ id: string }>(
    'select id from exportd.backfills where batch_export_id = $1 and finished_at is null order by id',
    [batchExport.id],
  );
  const reason = 'The batch export was deleted.';
  for (const { id } of rows) {
    const backfill = await transaction.lock(backfillDecider, id);
    await backfill.append(cause, decideBackfillControl(backfill.state(), 'cancel', reason));
  }
  const cancelled = await cancelRuns(transaction, batchExport.id, 'all', { cause, reason });
  await endComparisons(transaction.connection, batchExport.id);
  // They can no longer be read, and they name rows by their ids.
  for (const table of ['verifications', 'table_requests', 'table_faults'])
    await transaction.connection.query(`delete from exportd.${table} where batch_export_id = $1`, [
      batchExport.id,
    ]);
  // After locking the runs: a completing run resolves incidents while it holds its own lock.
  await dropNotifications(transaction.connection, batchExport.id);
  await removeSecrets(transaction.connection, {
    batchExportId: batchExport.id,
    cleanUpMs: cleanUpTimeOf(policies.maintenance),
  });
  return createEffect(true, { wake_backfills: rows.map(({ id }) => id), cancel_runs: cancelled });
}

async function applyCancelRun(context: CommandContext, body: { run_id: string }): Promise<CommandEffect> {
  const { transaction, batchExport, cause } = context;
  requireLive(batchExport.state());
  const run = await transaction.lock(runDecider, body.run_id);
  const state = run.state();
  if (state.status === 'Absent' || state.spec.batch_export_id !== batchExport.id)
    throw new CommandRejected('not_found', 'Not found.');
  const events = decideCancel(state, 'Cancelled by a user.');
  await run.append(cause, events);
  // The run asks its bucket when it publishes, so it continues.
  if (events.every(({ type }) => type !== 'RunCancelled')) return createEffect(true);
  const { rows } = await transaction.connection.query<{ backfill_id: string }>(
    'select backfill_id from exportd.backfill_runs where run_id = $1 and status is null order by backfill_id',
    [body.run_id],
  );
  return createEffect(true, {
    cancel_runs: [body.run_id],
    wake_backfills: rows.map(({ backfill_id }) => backfill_id),
  });
}

/** Bodies were validated against the schema of their command before they were stored. */
function decide(context: CommandContext, command: Command): Promise<CommandEffect> {
  const body: unknown = command.body;
  switch (command.name) {
    case 'create':
      return applyCreate(context, {
        team_id: command.team_id,
        ...(body as { definition: BatchExportDefinition; paused: boolean }),
      });
    case 'update':
      return applyUpdate(context, body as Parameters<typeof applyUpdate>[1]);
    case 'pause':
      return applyPause(context, body as Parameters<typeof applyPause>[1]);
    case 'unpause':
      return applyUnpause(context, body as Parameters<typeof applyUnpause>[1]);
    case 'backfill':
      return applyBackfill(context, body as Parameters<typeof applyBackfill>[1]);
    case 'retry':
      return applyRetry(context, body as Parameters<typeof applyRetry>[1]);
    case 'retryFailed':
      return applyRetryFailed(context, body as Parameters<typeof applyRetryFailed>[1]);
    case 'delete':
      return applyDelete(context);
    case 'cancelRun':
      return applyCancelRun(context, body as Parameters<typeof applyCancelRun>[1]);
    case 'cancelBackfill':
      return applyBackfillControl(context, body as { backfill_id: string }, 'cancel');
    case 'pauseBackfill':
      return applyBackfillControl(context, body as { backfill_id: string }, 'pause');
    case 'unpauseBackfill':
      return applyBackfillControl(context, body as { backfill_id: string }, 'unpause');
  }
}

/**
 * Decides one stored command under the export's lock. Its events, read models and outcome are written in one
 * transaction. A rejection is an outcome too, and a command that is no longer pending is ignored. An error that would
 * recur is passed to `onError` and rejects the command, because it would otherwise block all later commands.
 * @returns what the workflow has to do outside the database, or undefined.
 */
export async function applyCommand(
  journal: Journal,
  policies: Policies,
  batchExportId: string,
  commandId: string,
  onError: (error: unknown) => void,
): Promise<CommandEffect | undefined> {
  try {
    return await journal.transaction(async (transaction) => {
      const batchExport = await transaction.lock(batchExportDecider, batchExportId);
      const command = await lockPendingCommand(transaction.connection, commandId);
      if (!command) return undefined;
      const cause = `command:${commandId}`;
      const done = await decide({ transaction, batchExport, policies, commandId, cause }, command);
      await recordCommandOutcome(
        transaction.connection,
        commandId,
        done.applied ? 'applied' : 'no-op',
        done.outcome,
      );
      return done;
    });
  } catch (error) {
    if (isTransient(error)) throw error;
    if (!(error instanceof CommandRejected)) onError(error);
    await rejectCommand(journal, commandId, error instanceof CommandRejected ? error : internalError());
    return undefined;
  }
}

const internalError = (): CommandRejected =>
  new CommandRejected(
    'internal_error',
    'Unexpected error in exportd. Nothing was changed. See the worker log for the stack trace.',
  );

/** Records a rejection in a new transaction, because the one that decided it was rolled back. */
async function rejectCommand(journal: Journal, commandId: string, rejection: CommandRejected): Promise<void> {
  await journal.transaction(async ({ connection }) => {
    const command = await lockPendingCommand(connection, commandId);
    if (!command) return;
    await recordCommandOutcome(connection, commandId, 'rejected', {
      code: rejection.code,
      detail: rejection.message,
      attr: rejection.attr,
    });
    await writeLogLine(connection, {
      team_id: command.team_id,
      batch_export_id: command.batch_export_id,
      run_id: null,
      level: 'WARNING',
      message: `Command ${command.name} was rejected: ${rejection.message}`,
    });
  });
}

const isCommandName = (name: string): name is keyof typeof commandBodySchemas =>
  Object.hasOwn(commandBodySchemas, name);

/**
 * Stores a manual signal as a command, and logs it with the identity of its sender: nothing else has it. It is stored as a
 * rejected command if the deployment accepts none, if it is invalid, or if it names a command that the export does not have. A signal that names
 * a stored command is ignored here.
 * @returns why it was rejected; undefined if it was not, or was stored before
 */
export async function storeManualSignal(
  journal: Journal,
  { allowsManualSignals }: Pick<Policies, 'allowsManualSignals'>,
  batchExportId: string,
  signal: ReceivedSignal,
): Promise<string | undefined> {
  const commandId = commandIdOf(signal.input);
  if (commandId !== undefined && (await hasCommand(journal.pool, batchExportId, commandId))) return undefined;
  const id = deterministicId('signal', batchExportId, signal.chain, signal.ordinal);
  return journal.transaction(async ({ connection }) => {
    const { rows } = await connection.query<{ team_id: number }>(
      'select team_id from exportd.batch_exports where id = $1',
      [batchExportId],
    );
    const teamId = rows[0]?.team_id;
    if (teamId === undefined) return undefined;
    const parsed =
      isCommandName(signal.name) && commandId === undefined && allowsManualSignals
        ? commandBodySchemas[signal.name].safeParse(signal.input ?? {})
        : undefined;
    // An unknown name is stored too (without NUL, which PostgreSQL rejects) and rejected below.
    const name = signal.name.replaceAll('\0', '').slice(0, 100);
    const { rowCount } = await connection.query(
      `insert into exportd.commands (id, batch_export_id, team_id, name, body)
       values ($1, $2, $3, $4, $5) on conflict do nothing`,
      [id, batchExportId, teamId, name, JSON.stringify(parsed?.success ? parsed.data : {})],
    );
    if (rowCount === 0) return undefined;
    const sender = signal.identity === undefined ? '' : ` of ${signal.identity}`;
    const log = (level: 'INFO' | 'WARNING', message: string): Promise<void> =>
      writeLogLine(connection, {
        team_id: teamId,
        batch_export_id: batchExportId,
        run_id: null,
        level,
        message: `Manual signal${sender} ${message}`,
      });
    if (parsed?.success) {
      await log('INFO', `was received: ${name}`);
      return undefined;
    }
    const issue = parsed?.error.issues[0];
    const detail = !allowsManualSignals
      ? `"${name}" was sent to Temporal, and this installation accepts no manual signals (EXPORTD_MANUAL_SIGNALS). Use the API.`
      : commandId !== undefined
        ? `The batch export has no command "${commandId.replaceAll('\0', '')}".`
        : issue
          ? `${issue.path.join('.') || 'payload'}: ${issue.message}`
          : `Unknown signal "${name}".`;
    await recordCommandOutcome(connection, id, 'rejected', { code: 'invalid_input', detail, attr: null });
    await log('WARNING', `was rejected: ${detail}`);
    return detail;
  });
}

async function hasCommand(pool: Pool, batchExportId: string, id: string): Promise<boolean> {
  if (!isId(id)) return false;
  const { rows } = await pool.query('select from exportd.commands where id = $1 and batch_export_id = $2', [
    id,
    batchExportId,
  ]);
  return rows.length > 0;
}

/** The search attributes of a schedule workflow, except the id of its export. */
export interface ScheduleAttributes {
  readonly project: string;
  readonly name: string;
  readonly model: string;
  readonly destination: string;
  readonly status: 'Active' | 'Paused' | 'Deleted';
}

/** Reads the search attributes of an export's schedule; null if there is no such export. */
export async function readScheduleAttributes(
  pool: Pool,
  batchExportId: string,
): Promise<ScheduleAttributes | null> {
  const { rows } = await pool.query<{
    team_id: number;
    name: string;
    model: string;
    destination_type: string;
    paused: boolean;
    deleted: boolean;
  }>(
    'select team_id, name, model, destination_type, paused, deleted from exportd.batch_exports where id = $1',
    [batchExportId],
  );
  const [row] = rows;
  if (!row) return null;
  return {
    project: String(row.team_id),
    name: row.name,
    model: row.model,
    destination: row.destination_type,
    status: row.deleted ? 'Deleted' : row.paused ? 'Paused' : 'Active',
  };
}

/** What a schedule workflow does next. */
export interface ScheduleStep {
  /** `absent` before the create command is decided and if it is rejected; `deleted` is final. */
  readonly status: 'live' | 'absent' | 'deleted';
  /** Milliseconds until the next step without a signal; null if only a signal changes anything. */
  readonly wake_in_ms: number | null;
  /** Whether the end of a run may change something before that. */
  readonly waits_for_run: boolean;
  readonly start_runs: readonly StartableRun[];
  readonly cancel_runs: readonly StartableRun[];
  readonly wake_backfills: readonly string[];
  /** Whether commands are pending that the next step has to decide. */
  readonly has_more: boolean;
  /** Unexpected errors that rejected a command, for the worker log. */
  readonly errors: readonly unknown[];
  /** Why manual signals were rejected, for the worker log. */
  readonly rejected_signals: readonly string[];
  /** Whether the step created notifications. */
  readonly has_new_deliveries: boolean;
  /** The summary in the Temporal UI. */
  readonly summary: string;
}

/**
 * One step of an export's schedule: stores manual signals as commands, decides at most `maxCommands` pending commands in
 * order of arrival, then creates runs for due intervals and automatic retries, oldest first.
 */
export async function advanceSchedule(
  journal: Journal,
  policies: Policies,
  batchExportId: string,
  signals: readonly ReceivedSignal[],
  maxCommands = Infinity,
): Promise<ScheduleStep> {
  const rejectedSignals: string[] = [];
  for (const signal of signals) {
    const detail = await storeManualSignal(journal, policies, batchExportId, signal);
    if (detail !== undefined) rejectedSignals.push(detail);
  }
  const cancelled: string[] = [];
  const backfills: string[] = [];
  const errors: unknown[] = [];
  const pending = await readPendingCommands(journal.pool, batchExportId);
  for (const { id, name, trace_parent } of pending.slice(0, maxCommands)) {
    const attributes = { 'exportd.command_id': id, 'exportd.batch_export_id': batchExportId };
    const effect = await inTraceOf(trace_parent, `apply ${name}`, { attributes }, () =>
      applyCommand(journal, policies, batchExportId, id, (error) => errors.push(error)),
    );
    cancelled.push(...(effect?.cancel_runs ?? []));
    backfills.push(...(effect?.wake_backfills ?? []));
  }
  const dueRuns = await journal.transaction((transaction) =>
    createDueRuns(transaction, policies, batchExportId),
  );
  const [rejected] = rejectedSignals;
  return {
    ...dueRuns,
    ...(rejected !== undefined && {
      summary: `${dueRuns.summary}\nIgnored ${rejectedSignals.length === 1 ? 'a signal' : `${rejectedSignals.length} signals`}: ${rejected}`,
    }),
    rejected_signals: rejectedSignals,
    start_runs: await readStartableRuns(journal.pool, { batch_export_id: batchExportId }),
    cancel_runs: await readRuns(journal.pool, cancelled),
    wake_backfills: [
      ...new Set([...backfills, ...(await readUnstartedBackfills(journal.pool, batchExportId))]),
    ],
    has_more: pending.length > maxCommands,
    errors,
  };
}

/** The cause under which an export's stream holds what the schedule decided for an interval or a skipped range. */
export const scheduledCause = ({ start, end }: DataInterval): string => `interval:${start}/${end}`;

type DueRuns = Pick<
  ScheduleStep,
  'status' | 'wake_in_ms' | 'waits_for_run' | 'summary' | 'has_new_deliveries'
>;

async function createDueRuns(
  transaction: JournalTransaction,
  policies: Policies,
  batchExportId: string,
): Promise<DueRuns> {
  const stream = await transaction.lock(batchExportDecider, batchExportId);
  const state = stream.state();
  const idle = { wake_in_ms: null, waits_for_run: false, has_new_deliveries: false };
  if (state.status !== 'live') return { ...idle, status: state.status, summary: state.status };
  const { name, interval } = state.definition;
  if (state.paused) return { ...idle, status: 'live', summary: `${name}: paused` };
  if (await pauseFailingExport(transaction, policies.pauseAfterFailures, stream))
    return {
      ...idle,
      status: 'live',
      summary: `${name}: paused after repeated failures`,
      has_new_deliveries: true,
    };
  const retryAt = await createDueRetries(transaction, policies, batchExportId, state);
  const next = await scheduleDueIntervals(transaction, policies, stream);
  const wakes = [retryAt, next.wake_at].filter((at) => at !== null).map((at) => at.getTime());
  const wakeAt = wakes.length > 0 ? Math.min(...wakes) : null;
  const nextInterval =
    next.wake_at === null ? 'no interval after end_at' : `next interval due ${next.wake_at.toISOString()}`;
  const waitsFor = next.waits_for_slot ? 'waiting for a run to end' : nextInterval;
  return {
    status: 'live',
    wake_in_ms: wakeAt === null ? null : Math.max(0, wakeAt - transaction.now.getTime()),
    waits_for_run: next.waits_for_slot,
    has_new_deliveries: false,
    summary: `${name}: every ${interval.replace(/^every /, '')}, ${waitsFor}`,
  };
}

/** When the schedule decides again. */
type NextDecision = Pick<ScheduleDecision, 'wake_at' | 'waits_for_slot'>;

async function scheduleDueIntervals(
  transaction: JournalTransaction,
  policies: Policies,
  stream: LockedStream<BatchExportState, BatchExportEvent>,
): Promise<NextDecision> {
  const schedule = { batch_export_id: stream.id, backfill_id: null };
  let slots = await countFreeSlots(transaction.connection, policies, schedule);
  for (;;) {
    const state = stream.state();
    if (state.status !== 'live') return { wake_at: null, waits_for_slot: false };
    const step = decideNextInterval(state, {
      interval: await findIntervalFrom(
        transaction.connection,
        { batchExportId: stream.id, revisions: state.revisions },
        state.scheduled_until,
      ),
      now: transaction.now,
      jitterMs: (interval) => policies.jitterMs(stream.id, state.definition.interval, interval),
      hasFreeSlot: slots > 0,
      runIdOf: (interval) => deterministicId('schedule', stream.id, interval.start, interval.end),
    });
    const [event] = step.events;
    if (!event) return step;
    if (event.type === 'IntervalScheduled') {
      const { start, end, run_id } = event.data;
      const interval = { start, end };
      // If a backfill or a retry already runs this interval, the schedule adopts that run.
      const activeRunId = await findActiveRun(transaction.connection, stream.id, interval);
      const data = { run_id: activeRunId ?? run_id, ...interval };
      await stream.append(scheduledCause(interval), [{ type: 'IntervalScheduled', data }]);
      if (activeRunId !== null) continue;
      await createRun(transaction, state, {
        id: run_id,
        batch_export_id: stream.id,
        interval,
        purpose: { kind: 'interval' },
        allow_shrink: false,
      });
      slots -= 1;
    } else if (event.type === 'IntervalsSkipped') {
      await stream.append(scheduledCause(event.data), [event]);
    }
  }
}

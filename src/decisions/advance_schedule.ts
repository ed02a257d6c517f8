import { isId, commandIdOf, type ReceivedSignal } from '../contract/workflow_inputs.ts';
import { batchExportDecider, type BatchExportEvent, type BatchExportState } from '../domain/batch_export.ts';
import { decideNextInterval, type ScheduleDecision } from '../domain/due_intervals.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { commandBodySchemas, readPendingCommands, recordCommandOutcome } from '../journal/commands.ts';
import type { Pool } from '../journal/database.ts';
import {
  deterministicId,
  type Journal,
  type JournalTransaction,
  type LockedStream,
  writeLogLine,
} from '../journal/journal.ts';
import { inTraceOf } from '../tracing/spans.ts';
import { applyCommand } from './apply_command.ts';
import { pauseFailingExport } from './auto_pause.ts';
import {
  countFreeSlots,
  createRun,
  findActiveRun,
  readRuns,
  readStartableRuns,
  readUnstartedBackfills,
  type StartableRun,
  type Policies,
} from './create_run.ts';
import { createDueRetries } from './retries.ts';

const isCommandName = (name: string): name is keyof typeof commandBodySchemas =>
  Object.hasOwn(commandBodySchemas, name);

/**
 * Stores a manual signal as a command. An invalid signal is stored as a rejected command, and so is one that names a
 * command which the export does not have. A signal that names a stored command is ignored here.
 */
export async function storeManualSignal(
  journal: Journal,
  batchExportId: string,
  signal: ReceivedSignal,
): Promise<void> {
  const commandId = commandIdOf(signal.input);
  if (commandId !== undefined && (await hasCommand(journal.pool, batchExportId, commandId))) return;
  const id = deterministicId('signal', batchExportId, signal.chain, signal.ordinal);
  await journal.transaction(async ({ connection }) => {
    const { rows } = await connection.query<{ team_id: number }>(
      'select team_id from exportd.batch_exports where id = $1',
      [batchExportId],
    );
    const teamId = rows[0]?.team_id;
    if (teamId === undefined) return;
    const parsed =
      isCommandName(signal.name) && commandId === undefined
        ? commandBodySchemas[signal.name].safeParse(signal.input ?? {})
        : undefined;
    // An unknown name is stored too (without NUL, which PostgreSQL rejects) and rejected below.
    const name = signal.name.replaceAll('\0', '').slice(0, 100);
    const { rowCount } = await connection.query(
      `insert into exportd.commands (id, batch_export_id, team_id, name, body) values ($1, $2, $3, $4, $5)
       on conflict do nothing`,
      [id, batchExportId, teamId, name, JSON.stringify(parsed?.success ? parsed.data : {})],
    );
    if (rowCount === 0 || parsed?.success) return;
    const issue = parsed?.error.issues[0];
    const detail =
      commandId !== undefined
        ? `The batch export has no command "${commandId.replaceAll('\0', '')}".`
        : issue
          ? `${issue.path.join('.') || 'payload'}: ${issue.message}`
          : `Unknown signal "${name}".`;
    await recordCommandOutcome(connection, id, 'rejected', { code: 'invalid_input', detail, attr: null });
    await writeLogLine(connection, {
      team_id: teamId,
      batch_export_id: batchExportId,
      run_id: null,
      level: 'WARNING',
      message: `Manual signal was rejected: ${detail}`,
    });
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
  /** The export's name; absent in results that were recorded before it was added. */
  readonly name?: string;
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
  for (const signal of signals) await storeManualSignal(journal, batchExportId, signal);
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
  return {
    ...dueRuns,
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
const scheduledCause = ({ start, end }: DataInterval): string => `interval:${start}/${end}`;

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
        backfill_id: null,
        retry_number: 0,
        allow_shrink: false,
      });
      slots -= 1;
    } else if (event.type === 'IntervalsSkipped') {
      await stream.append(scheduledCause(event.data), [event]);
    }
  }
}

import type { ReceivedSignal } from '../contract/workflow_inputs.ts';
import { batchExportDecider, type BatchExportEvent, type BatchExportState } from '../domain/batch_export.ts';
import { counted } from '../domain/in_words.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { readPendingCommands } from '../journal/commands.ts';
import {
  deterministicId,
  type Journal,
  type JournalTransaction,
  type LockedStream,
} from '../journal/journal.ts';
import { inTraceOf } from '../tracing/spans.ts';
import { countFreeSlots, findActiveRun, readRunsOfSchedule } from './active_runs.ts';
import { applyCommand } from './commands/apply_command.ts';
import { createRun } from './create_run.ts';
import { findIntervalFrom } from './ledger_boundaries.ts';
import { storeManualSignal } from './manual_signals.ts';
import type { Policies } from './policies.ts';
import { createDueRetries } from './retries.ts';
import { pauseFailingExport } from './auto_pause.ts';
import { readRuns, readStartable, type StartableRun } from './startable_runs.ts';
import { decideNextInterval, type ScheduleDecision } from '../domain/next_interval.ts';

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
  /** What this step has decided, for the Temporal UI: `pause; 1 interval scheduled; 1 run to start`. */
  readonly decided: string;
  /** How many commands it has decided. */
  readonly decided_commands: number;
  /** What the schedule waits for, for the Temporal UI: `the next interval`. */
  readonly waits_for: string;
  /** When the next interval is due; null if none is, or if a run has to end first. */
  readonly next_run_at: string | null;
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
  const decidedCommands: string[] = [];
  const pending = await readPendingCommands(journal.pool, batchExportId);
  for (const { id, name, trace_parent } of pending.slice(0, maxCommands)) {
    const attributes = { 'exportd.command_id': id, 'exportd.batch_export_id': batchExportId };
    const effect = await inTraceOf(trace_parent, `apply ${name}`, { attributes }, () =>
      applyCommand(journal, policies, batchExportId, id, (error) => errors.push(error)),
    );
    decidedCommands.push(effect ? name : `${name} rejected`);
    cancelled.push(...(effect?.cancel_runs ?? []));
    backfills.push(...(effect?.wake_backfills ?? []));
  }
  const { scheduled, ...dueRuns } = await journal.transaction((transaction) =>
    createDueRuns(transaction, policies, batchExportId),
  );
  const startable = await readStartable(journal.pool, batchExportId);
  const [rejected] = rejectedSignals;
  const decided = [
    ...countEach(decidedCommands),
    ...(scheduled > 0 ? [`${counted(scheduled, 'interval')} scheduled`] : []),
    ...(startable.runs.length > 0 ? [`${counted(startable.runs.length, 'run')} to start`] : []),
    ...(rejected === undefined ? [] : [`${counted(rejectedSignals.length, 'signal')} ignored: ${rejected}`]),
  ];
  return {
    ...dueRuns,
    decided: decided.length === 0 ? 'nothing to do' : decided.join('; ').slice(0, maxDecidedLength),
    decided_commands: decidedCommands.length,
    rejected_signals: rejectedSignals,
    start_runs: startable.runs,
    cancel_runs: await readRuns(journal.pool, cancelled),
    wake_backfills: [...new Set([...backfills, ...startable.backfills])],
    has_more: pending.length > maxCommands,
    errors,
  };
}

/** The cause under which an export's stream holds what the schedule decided for an interval or a skipped range. */
export const scheduledCause = ({ start, end }: DataInterval): string => `interval:${start}/${end}`;

/** Bounds what a step adds to the history of its workflow. */
const maxDecidedLength = 300;

/** Names with how often each occurs: `pause ×25`. */
const countEach = (names: readonly string[]): string[] =>
  [...new Set(names)].map((name) => {
    const times = names.filter((other) => other === name).length;
    return times === 1 ? name : `${name} ×${times}`;
  });

interface DueRuns extends Pick<
  ScheduleStep,
  'status' | 'wake_in_ms' | 'waits_for_run' | 'waits_for' | 'next_run_at'
> {
  /** How many intervals now have a run. */
  readonly scheduled: number;
}

async function createDueRuns(
  transaction: JournalTransaction,
  policies: Policies,
  batchExportId: string,
): Promise<DueRuns> {
  const stream = await transaction.lock(batchExportDecider, batchExportId);
  const state = stream.state();
  const idle = { wake_in_ms: null, waits_for_run: false, next_run_at: null, scheduled: 0 };
  if (state.status !== 'live') return { ...idle, status: state.status, waits_for: 'nothing' };
  if (state.paused) return { ...idle, status: 'live', waits_for: 'unpause: the export is paused' };
  const runs = await readRunsOfSchedule(transaction.connection, batchExportId);
  if (runs.last_failed && (await pauseFailingExport(transaction, policies.pauseAfterFailures, stream)))
    return { ...idle, status: 'live', waits_for: 'unpause: the export was paused after repeated failures' };
  const retryAt = runs.has_retries
    ? await createDueRetries(transaction, policies, batchExportId, state)
    : null;
  const slots = runs.has_retries
    ? await countFreeSlots(transaction.connection, policies, {
        batch_export_id: batchExportId,
        backfill_id: null,
      })
    : policies.maxConcurrentRuns - runs.active;
  const next = await scheduleDueIntervals(transaction, policies, stream, slots);
  const wakes = [retryAt, next.wake_at].filter((at) => at !== null).map((at) => at.getTime());
  const wakeAt = wakes.length > 0 ? Math.min(...wakes) : null;
  const isRetryNext = wakeAt !== null && retryAt?.getTime() === wakeAt;
  return {
    status: 'live',
    wake_in_ms: wakeAt === null ? null : Math.max(0, wakeAt - transaction.now.getTime()),
    waits_for_run: next.waits_for_slot,
    waits_for: next.waits_for_slot
      ? 'a run to end'
      : isRetryNext
        ? 'a retry'
        : next.wake_at === null
          ? 'a command: no interval is left before end_at'
          : 'the next interval',
    next_run_at: next.wake_at?.toISOString() ?? null,
    scheduled: next.scheduled,
  };
}

/** When the schedule decides again. */
interface NextDecision extends Pick<ScheduleDecision, 'wake_at' | 'waits_for_slot'> {
  /** How many intervals now have a run. */
  readonly scheduled: number;
}

async function scheduleDueIntervals(
  transaction: JournalTransaction,
  policies: Policies,
  stream: LockedStream<BatchExportState, BatchExportEvent>,
  freeSlots: number,
): Promise<NextDecision> {
  let slots = freeSlots;
  let scheduled = 0;
  for (;;) {
    const state = stream.state();
    if (state.status !== 'live') return { wake_at: null, waits_for_slot: false, scheduled };
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
    if (!event) return { wake_at: step.wake_at, waits_for_slot: step.waits_for_slot, scheduled };
    if (event.type === 'IntervalScheduled') {
      const { start, end, run_id } = event.data;
      const interval = { start, end };
      // If a backfill or a retry already runs this interval, the schedule adopts that run.
      const activeRunId = await findActiveRun(transaction.connection, stream.id, interval);
      const data = { run_id: activeRunId ?? run_id, ...interval };
      await stream.append(scheduledCause(interval), [{ type: 'IntervalScheduled', data }]);
      scheduled += 1;
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

import { cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Settings } from '../src/config/settings.ts';
import { advanceBackfill } from '../src/decisions/advance_backfill.ts';
import { continueRun, type ContinuedRun } from '../src/decisions/continue_run.ts';
import { isIntervalDue } from '../src/decisions/interval_due.ts';
import type { Policies } from '../src/decisions/policies.ts';
import { endRun, type RunOutcome } from '../src/decisions/run_outcomes.ts';
import type { RunRecorder } from '../src/decisions/run_recorder.ts';
import { advanceSchedule, type ScheduleStepResult } from '../src/decisions/advance_schedule.ts';
import { startableRun, startableRuns } from '../src/decisions/startable_runs.ts';
import type { BackfillStatus } from '../src/domain/backfill.ts';
import type { RunStatus } from '../src/domain/run.ts';
import type { SelectionOf } from '../src/destination/row_selections.ts';
import type { Journal } from '../src/journal/journal.ts';
import type { BarrierLook, BarrierState, Source } from '../src/source/source.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import type { BackfillClient } from '../src/temporal/clients/backfill_client.ts';
import { isInvalidRequest } from '../src/failures/grpc_errors.ts';
import type { RunStarter } from '../src/temporal/clients/run_starter.ts';
import type { ScheduleClient } from '../src/temporal/clients/schedule_client.ts';
import type { ReceivedSignal } from '../src/contract/signals.ts';
import {
  toApplicationFailure,
  stackFramesOf,
  withApplicationFailures,
} from '../src/failures/application_failures.ts';
import type { PublishEmpty } from '../src/export/publish_empty.ts';
import { countOpenRun, type CountedRows } from '../src/export/count_rows.ts';
import { startDeliveries, type StartDeliveriesDependencies } from '../src/notifications/start_deliveries.ts';
import { readScheduleAttributes, type ScheduleAttributes } from '../src/decisions/schedule_attributes.ts';

/** What the local activities work with. */
export interface AppendDependencies extends StartDeliveriesDependencies {
  readonly journal: Journal;
  readonly policies: Policies;
  readonly recorder: RunRecorder;
  readonly source: Source;
  readonly selectionOf: SelectionOf;
  readonly publishEmpty: PublishEmpty;
  readonly runs: RunStarter;
  readonly schedules: ScheduleClient;
  readonly backfills: BackfillClient;
  readonly settings: Pick<Settings, 'EXPORTD_CONTINUE_AS_NEW_COMMANDS' | 'EXPORTD_RANGE_ROWS'>;
}

/** What a schedule workflow learns from a step; runs go by their number, so that a catching-up keeps histories small. */
export interface ScheduleStepOutcome extends Pick<ScheduleStepResult, 'status' | 'wake_in_ms' | 'summary'> {
  readonly runs_to_start: number;
  readonly cancel_run_ids: readonly string[];
  readonly wake_backfill_ids: readonly string[];
  readonly attributes: ScheduleAttributes | null;
  /** Whether commands are left for another step. */
  readonly more: boolean;
  /** After how many commands the workflow continues as new. */
  readonly continue_after: number;
}

/** What a backfill workflow learns from a step. `busy` counts runs whose interval's last execution has not let go. */
export interface BackfillStepOutcome {
  readonly ended: boolean;
  readonly status: BackfillStatus | 'Absent';
  readonly opened: number;
  readonly total: number;
  readonly busy: number;
  readonly continue_after: number;
}

export type AppendActivities = ReturnType<typeof createAppendActivities>;

/** Words about who holds a barrier that travel through a history; the rest is a number. */
const holdersNamed = 5;

/** The control plane: each is one decision of src/decisions, or starts what was decided there. */
export function createAppendActivities(dependencies: AppendDependencies) {
  return { ...scheduleActivities(dependencies), ...runActivities(dependencies) };
}

function scheduleActivities(dependencies: AppendDependencies) {
  const { journal, policies, runs, backfills, settings, logger } = dependencies;
  const continue_after = settings.EXPORTD_CONTINUE_AS_NEW_COMMANDS;
  return retryIndefinitely(
    {
      /** Decides everything that waits for one export: signals, commands, due intervals and retries. */
      advanceSchedule: async (input: {
        batch_export_id: string;
        signals: readonly ReceivedSignal[];
        /** Signals with the id of a command that should be stored. */
        command_signals: readonly ReceivedSignal[];
        max_commands: number;
      }): Promise<ScheduleStepOutcome> => {
        const { batch_export_id, max_commands } = input;
        const signals = [...input.signals, ...input.command_signals];
        const step = await advanceSchedule(journal, policies, batch_export_id, signals, max_commands);
        for (const fault of step.errors)
          logger.error(
            { batch_export_id: input.batch_export_id, frames: stackFramesOf(fault) },
            `A command was rejected. ${toApplicationFailure(fault).message}`,
          );
        if (step.has_new_deliveries) await startDeliveries(dependencies, batch_export_id);
        return {
          status: step.status,
          wake_in_ms: step.wake_in_ms,
          summary: step.summary,
          runs_to_start: step.start_runs.length,
          cancel_run_ids: step.cancel_runs.map(({ run_id }) => run_id),
          wake_backfill_ids: step.wake_backfills,
          more: step.has_more,
          attributes: await readScheduleAttributes(journal.pool, input.batch_export_id),
          continue_after,
        };
      },

      /** Starts the executions of an export's open runs, and does what its commands asked for outside the database. */
      startAndCancelRuns: async (input: {
        batch_export_id: string;
        cancel_run_ids: readonly string[];
        wake_backfill_ids: readonly string[];
      }): Promise<{ busy: number }> => {
        for (const id of input.cancel_run_ids) {
          const run = await startableRun(journal.pool, id);
          if (run) await runs.cancel(run);
        }
        for (const id of input.wake_backfill_ids)
          await backfills.start(id).catch((error: unknown) => {
            // The schedule would never get past it. The reconciler tries again.
            if (!isInvalidRequest(error)) throw error;
            logger.error({ err: error, backfill_id: id }, 'Temporal does not accept a backfill.');
          });
        return {
          busy: await runs.startAll(
            await startableRuns(journal.pool, { batch_export_id: input.batch_export_id }),
          ),
        };
      },

      /** Moves a backfill on and starts the executions of its open runs. */
      advanceBackfill: async (input: { backfill_id: string }): Promise<BackfillStepOutcome> => {
        const step = await advanceBackfill(journal, policies, input.backfill_id);
        const { ended, status, runs_created: opened, total, start_runs } = step;
        if (step.has_new_deliveries) await startDeliveries(dependencies, step.batch_export_id);
        const busy = await runs.startAll(start_runs);
        return { ended, status, opened, total, busy, continue_after };
      },

      /** Ends a run that did not complete; one that has a terminal status keeps it. */
      recordRunOutcome: async (input: {
        run_id: string;
        status: RunOutcome;
        latest_error: string;
      }): Promise<void> => {
        await endRun(journal, policies, input.run_id, input);
      },

      /** Wakes whoever waits for the end of a run: the schedule for a slot or a retry, backfills for the next. */
      signalRunEnd: async (input: {
        run_id: string;
      }): Promise<{ status: RunStatus | 'Absent'; latest_error: string | null }> =>
        signalRunEnd(dependencies, input.run_id),
    },
    logger,
  );
}

function runActivities(dependencies: AppendDependencies) {
  const { journal, recorder, source, publishEmpty, logger } = dependencies;
  return withApplicationFailures(
    {
      /** One look whether a transaction of the source may still add to the run's interval; counts its rows when none may. */
      checkBarrier: async (input: {
        run_id: string;
        state: BarrierState;
      }): Promise<BarrierLook & { readonly counted?: CountedRows }> => {
        const run = await recorder.load(input.run_id);
        const look = await source.lookAtBarrier(run.spec.data_interval_end, input.state);
        const held_by = nameSome(look.held_by);
        // Once, when the wait begins: who looks at a run that does not get on finds the reason.
        if (input.state.phase === 'settling' && held_by.length > 0)
          await recorder.log(
            run,
            input.run_id,
            'INFO',
            `Waiting for open transactions of the source to end: ${held_by.join('; ')}.`,
          );
        if (look.state.phase !== 'open') return { ...look, held_by };
        // Most runs find it open at their first look; counting at once saves a step of the workflow.
        const settled = { run_id: input.run_id, settled: true, held_by };
        const counted = await countOpenRun(dependencies, settled, run, cancellationSignal());
        return { ...look, held_by, counted };
      },

      /** Publishes a run without rows, unless that is better left to the workers of the exports. */
      publishEmpty: async (input: { run_id: string }): Promise<{ readonly published: boolean }> => ({
        published: await publishEmpty(input.run_id),
      }),

      /** Closes a run whose execution has sent its share, and opens the run that the next execution goes on with. */
      continueRun: (input: { run_id: string }): Promise<ContinuedRun> => continueRun(journal, input.run_id),

      /** Counts the rows of the run's interval; an interval without rows is ready to be published then. */
      countRows: async (input: {
        run_id: string;
        settled: boolean;
        held_by: readonly string[];
      }): Promise<CountedRows> =>
        countOpenRun(dependencies, input, await recorder.load(input.run_id), cancellationSignal()),
    },
    logger,
  );
}

async function signalRunEnd(
  dependencies: Pick<AppendDependencies, 'journal' | 'schedules' | 'backfills'> & StartDeliveriesDependencies,
  runId: string,
): Promise<{ status: RunStatus | 'Absent'; latest_error: string | null }> {
  const { journal, schedules, backfills } = dependencies;
  const { rows } = await journal.pool.query<{
    batch_export_id: string;
    status: RunStatus;
    latest_error: string | null;
    retries_wait: boolean;
    has_news: boolean;
    backfill_id: string | null;
    waiting: string[];
  }>(
    `select batch_export_id, status, latest_error, backfill_id,
       exists (select from exportd.batch_export_runs failed
               where failed.batch_export_id = run.batch_export_id and failed.retry_at is not null) as retries_wait,
       exists (select from exportd.webhook_deliveries delivery where delivery.batch_export_id = run.batch_export_id
               and delivery.status = 'pending' and delivery.attempts = 0) as has_news,
       array(select waiting.backfill_id::text from exportd.backfill_runs waiting
             where waiting.run_id = run.id and waiting.status is null) as waiting
     from exportd.batch_export_runs run where id = $1`,
    [runId],
  );
  const [run] = rows;
  if (!run) return { status: 'Absent', latest_error: null };
  const ofSchedule = run.backfill_id === null;
  // Most often all that was due has begun long since, and a wake-up would cost as much as half a run.
  const mayOpen =
    ofSchedule && (run.status !== 'Completed' || (await isIntervalDue(journal, run.batch_export_id)));
  if (mayOpen || run.retries_wait) await schedules.wake(run.batch_export_id);
  // An automatic retry is not waited for by its backfill, but took a slot of it.
  const own = run.backfill_id === null ? [] : [run.backfill_id];
  for (const id of new Set([...own, ...run.waiting])) await backfills.wake(id);
  if (run.has_news) await startDeliveries(dependencies, run.batch_export_id);
  return { status: run.status, latest_error: run.latest_error };
}

const nameSome = (held: readonly string[]): readonly string[] =>
  held.length <= holdersNamed ? held : [...held.slice(0, holdersNamed), `${held.length - holdersNamed} more`];

type Activity = (...input: never[]) => Promise<unknown>;

/**
 * Activities that are tried again whatever they met. Nothing else could be done about a permanent fault of the control
 * database than to wait for a person who mends it; failing the workflow would only forget what it was asked.
 */
function retryIndefinitely<Activities extends Record<string, Activity>>(
  activities: Activities,
  logger: Logger,
): Activities {
  const patient = Object.entries(withApplicationFailures(activities, logger)).map(
    ([name, activity]) =>
      [
        name,
        async (...input: never[]) => {
          try {
            return await activity(...input);
          } catch (error) {
            const { type, message } = toApplicationFailure(error);
            logger.warn({ activity: name, type }, message);
            throw ApplicationFailure.retryable(message, type);
          }
        },
      ] as const,
  );
  // Each name has the same function as before, inside a wrapper that changes nothing of its type.
  return Object.fromEntries(patient) as Activities;
}

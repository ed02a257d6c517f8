import type { Settings } from '../src/config/settings.ts';
import type { ReceivedSignal } from '../src/contract/workflow_inputs.ts';
import { advanceSchedule, type ScheduleStep } from '../src/decisions/advance_schedule.ts';
import type { ScheduleAttributes } from '../src/decisions/described_export.ts';
import { createScheduleDescriber, type DescribedSchedule } from '../src/decisions/schedule_details.ts';
import type { Policies } from '../src/decisions/policies.ts';
import { readRuns, readStartable, type StartableRun } from '../src/decisions/startable_runs.ts';
import { stackFramesOf, toApplicationFailure } from '../src/failures/classify_error.ts';
import { isInvalidRequest } from '../src/failures/grpc_errors.ts';
import type { Journal } from '../src/journal/journal.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { wrapActivities } from './run_step.ts';

interface ScheduleActivityDependencies {
  readonly logger: Logger;
  readonly journal: Journal;
  readonly policies: Policies;
  readonly runs: {
    /** Starts the executions of runs; returns how many wait for another run of their interval to close. */
    startAll(runs: readonly StartableRun[]): Promise<number>;
    /** Cancels the executions of runs, if they run. */
    cancelAll(runs: readonly StartableRun[]): Promise<void>;
  };
  readonly backfills: {
    /** Starts the workflow of a backfill, or wakes it when it runs. */
    start(backfillId: string): Promise<void>;
  };
  readonly settings: Pick<Settings, 'EXPORTD_CONTINUE_AS_NEW_COMMANDS'>;
}

/** The result of a schedule's step. Started runs are not listed: catching up would fill the history with their ids. */
export interface ScheduleStepOutcome extends Pick<
  ScheduleStep,
  'status' | 'wake_in_ms' | 'waits_for_run' | 'decided' | 'waits_for' | 'has_more'
> {
  /** What the Temporal UI says of the export now, in Markdown; null while more commands wait, and after an error. */
  readonly details: string | null;
  /**
   * Created runs that wait for another run of their interval to close; the others have started. Null if none has, since
   * `startAndCancelRuns` has to cancel runs or to wake backfills before.
   */
  readonly blocked_runs: number | null;
  readonly cancel_run_ids: readonly string[];
  readonly wake_backfill_ids: readonly string[];
  /** Null where `details` are, and if there is no such export. */
  readonly attributes: ScheduleAttributes | null;
  /** After how many commands the workflow continues as new. */
  readonly continue_after: number;
}

export type ScheduleActivities = ReturnType<typeof createScheduleActivities>;

/** The activities of `batchExportSchedule`. */
export function createScheduleActivities(dependencies: ScheduleActivityDependencies) {
  const { journal, policies, runs, backfills, settings, logger } = dependencies;
  const describeSchedule = createScheduleDescriber(journal.pool);
  /** Null after an error: what the step has decided is committed, and must reach the workflow. */
  const describe = (batchExportId: string, step: ScheduleStep): Promise<DescribedSchedule | null> =>
    describeSchedule(batchExportId, step).catch((error: unknown) => {
      logger.warn({ err: error, batch_export_id: batchExportId }, 'Could not describe a schedule.');
      return null;
    });
  return wrapActivities(
    { logger, retryIndefinitely: true },
    {
      /**
       * Decides everything that waits for one export: signals, commands, due intervals and retries. It starts the created runs
       * if nothing comes before that: what else a step has decided must have reached the workflow first.
       */
      advanceSchedule: async (
        _,
        input: {
          batch_export_id: string;
          signals: readonly ReceivedSignal[];
          /** Signals that name a command, which should be stored already. */
          command_signals: readonly ReceivedSignal[];
          max_commands: number;
        },
      ): Promise<ScheduleStepOutcome> => {
        const { batch_export_id, max_commands } = input;
        const signals = [...input.signals, ...input.command_signals];
        const step = await advanceSchedule(journal, policies, batch_export_id, signals, max_commands);
        for (const detail of step.rejected_signals)
          logger.warn({ batch_export_id }, `A manual signal was rejected: ${detail}`);
        for (const error of step.errors)
          logger.error(
            { batch_export_id, stack: stackFramesOf(error) },
            `A command was rejected. ${toApplicationFailure(error).message}`,
          );
        const isScheduleOnly = step.cancel_runs.length === 0 && step.wake_backfills.length === 0;
        const blocked_runs = isScheduleOnly ? await runs.startAll(step.start_runs) : null;
        const described = step.has_more ? null : await describe(batch_export_id, step);
        return {
          status: step.status,
          wake_in_ms: step.wake_in_ms,
          waits_for_run: step.waits_for_run,
          decided: step.decided,
          waits_for: step.waits_for,
          details: described?.details ?? null,
          has_more: step.has_more,
          blocked_runs,
          cancel_run_ids: step.cancel_runs.map(({ run_id }) => run_id),
          wake_backfill_ids: step.wake_backfills,
          attributes: described?.attributes ?? null,
          continue_after: settings.EXPORTD_CONTINUE_AS_NEW_COMMANDS,
        };
      },

      /** Cancels runs, wakes backfills, and starts the created runs of an export. */
      startAndCancelRuns: async (
        _,
        input: {
          batch_export_id: string;
          cancel_run_ids: readonly string[];
          wake_backfill_ids: readonly string[];
        },
      ): Promise<{ blocked_runs: number }> => {
        await runs.cancelAll(await readRuns(journal.pool, input.cancel_run_ids));
        for (const id of input.wake_backfill_ids)
          await backfills.start(id).catch((error: unknown) => {
            // Retrying the same request would block the schedule. The reconciler retries it.
            if (!isInvalidRequest(error)) throw error;
            logger.error({ err: error, backfill_id: id }, 'Temporal rejected the start of a backfill.');
          });
        const startable = await readStartable(journal.pool, input.batch_export_id);
        return { blocked_runs: await runs.startAll(startable.runs) };
      },
    },
  );
}

import type { Context, Info } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { ActivityInterceptors } from '@temporalio/worker';
import { heartbeatIntervalMs } from '../../../activities/run_step.ts';
import type { Settings } from '../../config/settings.ts';
import type { WaitingRuns } from '../../decisions/waiting_runs.ts';
import { taskPriorities } from '../task_queues.ts';
import { type FairActivitySlots, returned, slotsTakenType } from './activity_slots.ts';

/** What admission reads of an attempt. */
type TaskContext = Pick<Context, 'cancellationSignal' | 'heartbeat'> & {
  readonly info: Pick<Info, 'priority' | 'startToCloseTimeoutMs'> & { readonly heartbeatDetails: unknown };
};

/** An attempt that waits in the worker uses at most this share of its time limit. */
const heldShare = 0.1;

/** After so many tasks of a project in a row the next one is run whatever its interval, to bound what the order costs. */
const maxReturnedInRow = 30;

/**
 * Lets each activity wait for its share of the slots before it starts.
 *
 * A task that goes back to Temporal loses its place, since the queue of a project has the order of arrival. So one that waits
 * for the share of its project stays while no other project can use its slot. That order is not always the one of the
 * intervals: while all slots are taken, a scheduled run goes back if older ones of its project wait.
 */
export const admission = (
  slots: Pick<FairActivitySlots, 'admit' | 'areTaken'>,
  waiting: WaitingRuns,
  { EXPORTD_HEARTBEAT_TIMEOUT }: Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT'>,
) => {
  const running = new Set<string>();
  /** By project. */
  const returnedInRow = new Map<string, number>();

  const admit = async (context: TaskContext, project: string, runId: string): Promise<() => void> => {
    const { info, cancellationSignal } = context;
    const heldUntil = performance.now() + info.startToCloseTimeoutMs * heldShare;
    for (;;)
      try {
        const intervalMs = heartbeatIntervalMs(EXPORTD_HEARTBEAT_TIMEOUT);
        return await slots.admit(project, intervalMs, cancellationSignal);
      } catch (error) {
        const isTaken = error instanceof ApplicationFailure && error.type === slotsTakenType;
        const mayStay = isTaken && performance.now() < heldUntil;
        if (!mayStay || (await waiting.hasOtherProjects([...running, runId]))) throw error;
        // With what the attempt before has reported. The response reports a cancellation.
        context.heartbeat(info.heartbeatDetails);
      }
  };
  const comesLater = async (project: string, runId: string): Promise<boolean> => {
    const returnedBefore = returnedInRow.get(project) ?? 0;
    const isLater =
      returnedBefore < maxReturnedInRow && slots.areTaken() && (await waiting.hasOlder(runId, [...running]));
    if (isLater) returnedInRow.set(project, returnedBefore + 1);
    else returnedInRow.delete(project);
    return isLater;
  };

  return (context: TaskContext): ActivityInterceptors => ({
    inbound: {
      execute: async (input, next) => {
        // Empty if the server does not know fairness keys: then all projects share the slots as one.
        const { fairnessKey: project = '', priorityKey } = context.info.priority ?? {};
        const runId = runIdOf(input.args);
        const end = await admit(context, project, runId);
        running.add(runId);
        try {
          if (priorityKey !== taskPriorities.backfill && (await comesLater(project, runId)))
            throw returned('OlderRunsFirst', 'Runs of older intervals of the project wait for a slot.');
          return await next(input);
        } finally {
          running.delete(runId);
          end();
        }
      },
    },
  });
};

/** All activities of the export worker have the id of their run in their input. */
function runIdOf([input]: readonly unknown[]): string {
  if (typeof input !== 'object' || input === null || !('run_id' in input)) return '';
  return typeof input.run_id === 'string' ? input.run_id : '';
}

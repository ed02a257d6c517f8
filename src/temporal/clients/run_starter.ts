import { WorkflowExecutionAlreadyStartedError, type Client, type WorkflowOptions } from '@temporalio/client';
import type { StartableRun } from '../../decisions/startable_runs.ts';
import { runWorkflowId } from '../../contract/workflow_ids.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { searchAttributes } from '../../../workflows/search_attributes.ts';
import { forEachConcurrently } from '../concurrency.ts';
import { describeExecution, isExecutionOf } from './executions.ts';
import { isInvalidRequest } from '../../failures/grpc_errors.ts';
import { createRecentIds } from './recent_ids.ts';
import { runSummary } from './summaries.ts';
import { executionTimeoutMs, runInput, type RunSettings } from './run_limits.ts';
import { ignoreNotFound } from './schedule_client.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** Starts and cancels the executions of runs, each independent of who asks for it. */
export interface RunStarter {
  /**
   * Starts a run's execution; one that runs already is left alone.
   * @returns false while the execution of another run of the same interval has not let go.
   */
  start(run: StartableRun): Promise<boolean>;
  /**
   * Starts those of several that have had no execution yet. One whose execution has ended without a word in the journal
   * is left to the reconciler, which tells a termination by hand from a crash. So is one that Temporal does not accept:
   * the others have their turn all the same.
   * @returns how many are kept waiting by another run of their interval.
   */
  startAll(runs: readonly StartableRun[]): Promise<number>;
  /** Puts a fresh execution in the place of one that is stuck. */
  restart(run: StartableRun): Promise<void>;
  /** Asks a run's execution to end; one that does not run is no error. */
  cancel(run: StartableRun): Promise<void>;
}

const startsAtOnce = 8;

/**
 * Of tasks that wait for a worker, scheduled runs come first, and projects have their turns within each kind. A server
 * that does not do this (`matching.useNewMatcher`, `matching.enableFairness`) takes them as they come.
 */
const priorities = { scheduled: 2, backfill: 4 } as const;

/** Runs of which it is remembered that they were started; of any other, Temporal is asked. */
const rememberedRuns = 10_000;

/** Starts runs on a Temporal namespace. */
export function createRunStarter(client: Client, settings: RunSettings & ExecutionSettings): RunStarter {
  // A step of a schedule or a backfill names its open runs again and again: each would be refused by Temporal as started.
  const started = createRecentIds(rememberedRuns);
  const startAs = (
    run: StartableRun,
    policies: Pick<WorkflowOptions, 'workflowIdConflictPolicy' | 'workflowIdReusePolicy'>,
  ) =>
    client.workflow.start(workflowTypes.run, {
      workflowId: runWorkflowId(run),
      ...policies,
      taskQueue: taskQueues(settings).control,
      args: [runInput(run, settings)],
      workflowExecutionTimeout: executionTimeoutMs(run, settings),
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      // Inherited by its activities.
      priority: {
        priorityKey: run.backfill_id === null ? priorities.scheduled : priorities.backfill,
        fairnessKey: String(run.team_id),
      },
      memo: { run_id: run.run_id },
      typedSearchAttributes: [
        { key: searchAttributes.project, value: String(run.team_id) },
        { key: searchAttributes.batchExport, value: run.batch_export_id },
        { key: searchAttributes.model, value: run.model },
        { key: searchAttributes.destination, value: run.destination_type },
        { key: searchAttributes.intervalStart, value: run.data_interval_start },
        { key: searchAttributes.run, value: run.run_id },
        { key: searchAttributes.status, value: 'Starting' },
        ...(run.backfill_id === null ? [] : [{ key: searchAttributes.backfill, value: run.backfill_id }]),
      ],
      staticSummary: runSummary(run),
    });
  const start = async (run: StartableRun): Promise<boolean> => {
    try {
      await startAs(run, { workflowIdConflictPolicy: 'FAIL' });
      return true;
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      const latest = await describeExecution(client, runWorkflowId(run));
      return latest !== undefined && isExecutionOf(run, latest);
    }
  };
  const startFirst = async (run: StartableRun): Promise<boolean> => {
    try {
      await startAs(run, { workflowIdReusePolicy: 'REJECT_DUPLICATE' });
      return true;
    } catch (error) {
      if (isInvalidRequest(error)) return true;
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      const latest = await describeExecution(client, runWorkflowId(run));
      if (latest && isExecutionOf(run, latest)) return true;
      return latest?.status === 'RUNNING' ? false : start(run);
    }
  };
  return {
    start,
    startAll: async (runs) => {
      let busy = 0;
      const others = runs.filter(({ run_id }) => !started.has(run_id));
      await forEachConcurrently(others, startsAtOnce, async (run) => {
        if (await startFirst(run)) started.add(run.run_id);
        else busy += 1;
      });
      return busy;
    },
    restart: async (run) => {
      await startAs(run, { workflowIdConflictPolicy: 'TERMINATE_EXISTING' });
    },
    cancel: async (run) => {
      const execution = await describeExecution(client, runWorkflowId(run));
      if (execution?.run_id !== run.run_id || execution.status !== 'RUNNING') return;
      const handle = client.workflow.getHandle(runWorkflowId(run), execution.temporal_run_id);
      await handle.cancel().catch(ignoreNotFound);
    },
  };
}

import { type Client, WorkflowExecutionAlreadyStartedError, type WorkflowOptions } from '@temporalio/client';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import { BoundedMap } from '../../concurrency/bounded_map.ts';
import { forEachConcurrently } from '../../concurrency/keyed_semaphore.ts';
import type { Settings } from '../../config/settings.ts';
import { workflowIds, workflowTypes } from '../../contract/workflow_ids.ts';
import type { StartableRun } from '../../decisions/startable_runs.ts';
import { isInvalidRequest } from '../../failures/grpc_errors.ts';
import { inNewTrace, inTraceOf } from '../../tracing/spans.ts';
import { taskPriorities, taskQueues } from '../task_queues.ts';
import { describeExecution, ignoreNotFound, isExecutionOf, type StartSettings } from './executions.ts';
import { runInput, type RunSettings, startDelayOf } from './run_input.ts';
import { runMetadata } from './user_metadata.ts';

/** Starts and cancels executions of runs. An execution does not depend on its caller. */
export interface RunStarter {
  /**
   * Starts a run's execution, unless it runs. Its summary shows the reason.
   * @returns false while an execution of another run of the same interval has not closed
   */
  start(run: StartableRun, reason?: string): Promise<boolean>;
  /**
   * Starts the runs that have had no execution yet. The reconciler handles those whose execution ended without recording
   * an outcome, since it distinguishes terminations from crashes, and those that Temporal rejects.
   * @returns how many wait for an execution of another run of their interval to close
   */
  startAll(runs: readonly StartableRun[]): Promise<number>;
  /** Terminates a stuck execution and starts a new one, whose summary shows the reason. */
  restart(run: StartableRun, reason: string): Promise<void>;
  /** Cancels a run's execution, if it runs. */
  cancel(run: StartableRun): Promise<void>;
  /** Cancels the executions of runs, if they run. */
  cancelAll(runs: readonly StartableRun[]): Promise<void>;
  /** What the Temporal UI says of a run, in Markdown. */
  describe(run: StartableRun): string;
}

const maxConcurrentRequests = 8;

/** How many started runs are remembered; starting any other asks Temporal. */
const maxRememberedRuns = 10_000;

/**
 * Creates the starter.
 * @param takesFirstTask whether the client is on the connection of the workers, which take the first task with the response to
 *   the start if they are not busy: no queue has it, and no poll
 */
export function createRunStarter(
  client: Client,
  settings: RunSettings &
    StartSettings &
    Pick<Settings, 'EXPORTD_TEMPORAL_REQUEST_TIMEOUT' | 'EXPORTD_SETTLE_DELAY'>,
  { takesFirstTask = false }: { readonly takesFirstTask?: boolean } = {},
): RunStarter {
  // Every step of a schedule or backfill lists its created runs again; Temporal would reject each as started.
  const started = new BoundedMap<string, true>(maxRememberedRuns);
  const ids = workflowIds(settings);
  const send = (
    run: StartableRun,
    policies: Pick<WorkflowOptions, 'workflowIdConflictPolicy' | 'workflowIdReusePolicy' | 'startDelay'>,
    reason?: string,
  ) =>
    client.workflow.start(workflowTypes.run, {
      workflowId: ids.run(run),
      ...policies,
      taskQueue: taskQueues(settings).control,
      args: [{ ...runInput(run, settings), ...(policies.startDelay && { has_waited_to_settle: true }) }],
      // No timeout of the execution: it would include the time that tasks wait for a free slot.
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      requestEagerStart: takesFirstTask && policies.startDelay === undefined,
      // Its activities inherit this.
      priority: {
        priorityKey: run.backfill_id === null ? taskPriorities.scheduled : taskPriorities.backfill,
        fairnessKey: String(run.team_id),
      },
      memo: { run_id: run.run_id },
      typedSearchAttributes: [
        { key: searchAttributes.project, value: String(run.team_id) },
        { key: searchAttributes.batchExport, value: run.batch_export_id },
        { key: searchAttributes.name, value: run.batch_export_name },
        { key: searchAttributes.model, value: run.model },
        { key: searchAttributes.destination, value: run.destination_type },
        { key: searchAttributes.intervalStart, value: run.data_interval_start },
        { key: searchAttributes.run, value: run.run_id },
        { key: searchAttributes.status, value: 'Starting' },
        ...(run.backfill_id === null ? [] : [{ key: searchAttributes.backfill, value: run.backfill_id }]),
      ],
      ...runMetadata(run, settings, reason),
    });
  const startAs: typeof send = (run, policies, reason) => {
    const { run_id, batch_export_id, data_interval_start, trace_parent } = run;
    const attributes = {
      'exportd.run_id': run_id,
      'exportd.batch_export_id': batch_export_id,
      'exportd.interval_start': data_interval_start,
    };
    const start = () => send(run, policies, reason);
    return trace_parent === null
      ? inNewTrace(`run ${run.model}`, { attributes }, start)
      : inTraceOf(trace_parent, 'start run', { attributes }, start);
  };
  const start = async (run: StartableRun, reason?: string): Promise<boolean> => {
    try {
      await startAs(run, { workflowIdConflictPolicy: 'FAIL' }, reason);
      return true;
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      const latest = await describeExecution(client, ids.run(run));
      return latest !== undefined && isExecutionOf(run, latest);
    }
  };
  const startFirst = async (run: StartableRun): Promise<boolean> => {
    try {
      const startDelay = startDelayOf(run, settings);
      await startAs(run, {
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
        ...(startDelay > 0 && { startDelay }),
      });
      return true;
    } catch (error) {
      if (isInvalidRequest(error)) return true;
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      const latest = await describeExecution(client, ids.run(run));
      if (latest && isExecutionOf(run, latest)) return true;
      return latest?.status === 'RUNNING' ? false : start(run);
    }
  };
  const cancel = async (run: StartableRun): Promise<void> => {
    const execution = await describeExecution(client, ids.run(run));
    if (execution?.run_id !== run.run_id || execution.status !== 'RUNNING') return;
    const handle = client.workflow.getHandle(ids.run(run), execution.temporal_run_id);
    await handle.cancel().catch(ignoreNotFound);
  };
  return {
    start,
    startAll: async (runs) => {
      let blocked = 0;
      const others = runs.filter(({ run_id }) => !started.has(run_id));
      await forEachConcurrently(others, maxConcurrentRequests, async (run) => {
        const deadline = Date.now() + settings.EXPORTD_TEMPORAL_REQUEST_TIMEOUT;
        if (await client.withDeadline(deadline, () => startFirst(run))) started.set(run.run_id, true);
        else blocked += 1;
      });
      return blocked;
    },
    restart: async (run, reason) => {
      await startAs(run, { workflowIdConflictPolicy: 'TERMINATE_EXISTING' }, reason);
    },
    cancel,
    cancelAll: (runs) => forEachConcurrently(runs, maxConcurrentRequests, cancel),
    describe: (run) => runMetadata(run, settings, undefined).staticDetails,
  };
}

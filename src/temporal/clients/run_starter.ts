import { type Client, WorkflowExecutionAlreadyStartedError, type WorkflowOptions } from '@temporalio/client';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import { forEachConcurrently } from '../../concurrency/keyed_semaphore.ts';
import type { Settings } from '../../config/settings.ts';
import { workflowIds, workflowTypes, type RunInput } from '../../contract/workflow_inputs.ts';
import type { StartableRun } from '../../decisions/create_run.ts';
import { nominalLengthMs } from '../../domain/intervals.ts';
import { isInvalidRequest } from '../../failures/grpc_errors.ts';
import { inNewTrace, inTraceOf } from '../../tracing/spans.ts';
import { type ExecutionSettings, taskQueues } from '../connections.ts';
import { describeExecution, isExecutionOf, runSummary, withReason } from './executions.ts';
import { ignoreNotFound } from './schedule_client.ts';

/** A bounded set of ids. */
interface RecentIds {
  has(id: string): boolean;
  add(id: string): void;
}

/** Creates a set that drops its oldest id when it holds more than `maxIds`. */
export function createRecentIds(maxIds: number): RecentIds {
  const ids = new Set<string>();
  return {
    has: (id) => ids.has(id),
    add: (id) => {
      ids.add(id);
      const [oldest] = ids;
      if (ids.size > maxIds && oldest !== undefined) ids.delete(oldest);
    },
  };
}

/** The settings that limit a run. */
type RunSettings = Pick<
  Settings,
  | 'EXPORTD_RUN_TIMEOUT'
  | 'EXPORTD_ACTIVITY_SCHEDULE_TO_CLOSE_TIMEOUT'
  | 'EXPORTD_ACTIVITY_RETRY_INITIAL'
  | 'EXPORTD_ACTIVITY_RETRY_MAX'
  | 'EXPORTD_HEARTBEAT_TIMEOUT'
  | 'EXPORTD_RANGES_AT_ONCE'
  | 'EXPORTD_SETTLE_TIMEOUT'
>;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Days with a clock change are at most this much shorter or longer. */
const clockChange = 2 * hour;

/**
 * Maximum duration of a run in milliseconds, without the time that its tasks wait for a free slot: long enough for many
 * attempts. It also depends on the length of the run's interval, which may differ from the export's current interval or
 * bridge two of them.
 */
export function runTimeoutMs(
  run: Pick<StartableRun, 'interval' | 'data_interval_start' | 'data_interval_end'>,
  settings: RunSettings,
): number {
  if (settings.EXPORTD_RUN_TIMEOUT !== undefined) return settings.EXPORTD_RUN_TIMEOUT;
  return Math.max(timeoutFor(nominalLengthMs(run.interval)), timeoutFor(lengthMs(run)));
}

function timeoutFor(length: number): number {
  if (length < hour) return Math.max(20 * minute, length);
  if (length < day - clockChange) return 6 * hour;
  return length <= day + clockChange ? 24 * hour : 72 * hour;
}

const lengthMs = (run: Pick<StartableRun, 'data_interval_start' | 'data_interval_end'>): number =>
  new Date(run.data_interval_end).getTime() - new Date(run.data_interval_start).getTime();

/** Creates the input of a run's execution. */
export function runInput(
  run: StartableRun,
  settings: RunSettings & Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>,
): RunInput {
  const timeout = runTimeoutMs(run, settings);
  return {
    run_id: run.run_id,
    batch_export_id: run.batch_export_id,
    data_interval_start: run.data_interval_start,
    data_interval_end: run.data_interval_end,
    export_task_queue: taskQueues(settings).export,
    limits: {
      settle_timeout_ms: Math.min(settings.EXPORTD_SETTLE_TIMEOUT, lengthMs(run)),
      timeout_ms: timeout,
      retry_budget_ms: Math.min(
        settings.EXPORTD_ACTIVITY_SCHEDULE_TO_CLOSE_TIMEOUT ?? timeout / 2,
        timeout / 2,
      ),
      retry_initial_ms: settings.EXPORTD_ACTIVITY_RETRY_INITIAL,
      retry_max_ms: Math.max(settings.EXPORTD_ACTIVITY_RETRY_MAX, settings.EXPORTD_ACTIVITY_RETRY_INITIAL),
      heartbeat_timeout_ms: settings.EXPORTD_HEARTBEAT_TIMEOUT,
      ranges_at_once: settings.EXPORTD_RANGES_AT_ONCE,
    },
  };
}

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
}

const maxConcurrentRequests = 8;

/**
 * Tasks of scheduled runs come first; within a priority, projects take turns. A server without this feature
 * (`matching.useNewMatcher`, `matching.enableFairness`) serves tasks in order of arrival.
 */
const priorities = { scheduled: 2, backfill: 4 } as const;

/** How many started runs are remembered; starting any other asks Temporal. */
const maxRememberedRuns = 10_000;

/** Creates the starter. */
export function createRunStarter(client: Client, settings: RunSettings & ExecutionSettings): RunStarter {
  // Every step of a schedule or backfill lists its created runs again; Temporal would reject each as started.
  const started = createRecentIds(maxRememberedRuns);
  const ids = workflowIds(settings);
  const send = (
    run: StartableRun,
    policies: Pick<WorkflowOptions, 'workflowIdConflictPolicy' | 'workflowIdReusePolicy'>,
    reason?: string,
  ) =>
    client.workflow.start(workflowTypes.run, {
      workflowId: ids.run(run),
      ...policies,
      taskQueue: taskQueues(settings).control,
      args: [runInput(run, settings)],
      // No timeout of the execution: it would include the time that tasks wait for a free slot.
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      // Its activities inherit this.
      priority: {
        priorityKey: run.backfill_id === null ? priorities.scheduled : priorities.backfill,
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
      staticSummary: withReason(runSummary(run), reason),
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
      await startAs(run, { workflowIdReusePolicy: 'REJECT_DUPLICATE' });
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
        if (await startFirst(run)) started.add(run.run_id);
        else blocked += 1;
      });
      return blocked;
    },
    restart: async (run, reason) => {
      await startAs(run, { workflowIdConflictPolicy: 'TERMINATE_EXISTING' }, reason);
    },
    cancel,
    cancelAll: (runs) => forEachConcurrently(runs, maxConcurrentRequests, cancel),
  };
}

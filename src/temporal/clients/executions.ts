// Node cannot see the names of this CommonJS module, so it is imported whole.
import proto from '@temporalio/proto';
import type { temporal } from '@temporalio/proto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, type WorkflowExecutionStatusName, WorkflowNotFoundError } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import type { Settings } from '../../config/settings.ts';
import { type DeploymentSettings, type RunInterval, workflowIds } from '../../contract/workflow_ids.ts';
import { isInvalidRequest } from '../../failures/grpc_errors.ts';
import { deterministicId } from '../../journal/journal.ts';
import { type ExecutionSettings, taskQueues } from '../task_queues.ts';

/** The latest execution of a workflow id. */
export interface Execution {
  /** The run of a run's execution, from its memo. */
  readonly run_id: string | undefined;
  readonly temporal_run_id: string;
  readonly status: WorkflowExecutionStatusName;
  /** The current attempt of its workflow task; 0 when none is pending. */
  readonly task_attempt: number;
  /** Whether a workflow task or an activity is pending, so that it continues without a signal. */
  readonly is_busy: boolean;
}

/** Describes the latest execution of a workflow id; undefined when Temporal knows none. */
export async function describeExecution(client: Client, workflowId: string): Promise<Execution | undefined> {
  try {
    const handle = client.workflow.getHandle(workflowId);
    const found = await handle.describe();
    const { pendingWorkflowTask, pendingActivities } = found.raw;
    return {
      run_id: runIdOf(found.memo),
      temporal_run_id: found.runId,
      status: found.status.name,
      task_attempt: pendingWorkflowTask?.attempt ?? 0,
      is_busy: Boolean(pendingWorkflowTask) || (pendingActivities?.length ?? 0) > 0,
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** The run in an execution's memo. */
const runIdOf = (memo: Record<string, unknown> | undefined): string | undefined =>
  typeof memo?.run_id === 'string' ? memo.run_id : undefined;

/**
 * Whether an execution belongs to a run. The execution of the previous run does too, after the journal has continued the
 * run as new and until Temporal has: what happens to it in between happens to this run.
 */
export const isExecutionOf = (
  run: { readonly run_id: string },
  { run_id }: Pick<Execution, 'run_id'>,
): boolean =>
  run_id !== undefined && (run_id === run.run_id || deterministicId('continue', run_id) === run.run_id);

/** An execution as Temporal lists it, seconds after it changed. */
export interface ListedExecution {
  readonly workflow_id: string;
  readonly temporal_run_id: string;
  /** The run of a run's execution; undefined if it names none. */
  readonly run_id: string | undefined;
}

/**
 * Lists executions of this deployment, 1,000 with a request.
 * @throws ServiceError of @temporalio/client when Temporal does not respond
 */
export interface ExecutionLists {
  /** The running executions of a workflow type. */
  running(workflowType: string): Promise<ListedExecution[]>;
  /**
   * The running executions of a workflow type whose workflow task keeps failing, as far as Temporal reports them: from
   * server 1.30 on, where the operator has not switched it off. Empty if it reports none.
   */
  withTaskProblems(workflowType: string): Promise<ListedExecution[]>;
  /** The executions of a workflow type that were closed since a time, but not by their own decision. */
  closedAbnormally(workflowType: string, since: Date): Promise<ListedExecution[]>;
}

/** The most that Temporal returns with a request, unless its operator has changed that. */
const pageSize = 1_000;

/** A server that does not report problems of workflow tasks is asked again after this time: it may have been upgraded. */
const unsupportedMs = 3_600_000;

/** Creates the lists. They skip what they cannot decode, which a manually started workflow may contain. */
export function createExecutionLists(
  client: Client,
  settings: Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>,
): ExecutionLists {
  let problemsUnsupportedUntil = 0;
  const list = async (workflowType: string, condition: string): Promise<ListedExecution[]> => {
    const executions: ListedExecution[] = [];
    let nextPageToken: Uint8Array = new Uint8Array();
    do {
      const page = await client.workflowService.listWorkflowExecutions({
        namespace: client.options.namespace,
        query: `WorkflowType = '${workflowType}' AND TaskQueue = '${taskQueues(settings).control}' AND ${condition}`,
        pageSize,
        nextPageToken,
      });
      executions.push(...page.executions.map(toListedExecution));
      ({ nextPageToken } = page);
    } while (nextPageToken.length > 0);
    return executions;
  };
  return {
    running: (workflowType) => list(workflowType, `ExecutionStatus = 'Running'`),
    withTaskProblems: async (workflowType) => {
      if (performance.now() < problemsUnsupportedUntil) return [];
      try {
        return await list(
          workflowType,
          `ExecutionStatus = 'Running' AND ` +
            `TemporalReportedProblems IN ('category=WorkflowTaskFailed', 'category=WorkflowTaskTimedOut')`,
        );
      } catch (error) {
        // A server that does not know the attribute rejects the query.
        if (!isInvalidRequest(error)) throw error;
        problemsUnsupportedUntil = performance.now() + unsupportedMs;
        return [];
      }
    },
    closedAbnormally: (workflowType, since) =>
      list(
        workflowType,
        `ExecutionStatus IN ('Failed', 'Terminated', 'Canceled', 'TimedOut') AND CloseTime > '${since.toISOString()}'`,
      ),
  };
}

type Payload = temporal.api.common.v1.IPayload;

const toListedExecution = ({
  execution,
  memo,
  searchAttributes: attributes,
}: temporal.api.workflow.v1.IWorkflowExecutionInfo): ListedExecution => ({
  workflow_id: execution?.workflowId ?? '',
  temporal_run_id: execution?.runId ?? '',
  run_id: textOf(memo?.fields?.run_id) ?? textOf(attributes?.indexedFields?.[searchAttributes.run.name]),
});

/** Decodes a text; undefined if it is none, or encoded by a payload codec. */
function textOf(payload: Payload | undefined): string | undefined {
  try {
    const value: unknown = payload && defaultPayloadConverter.fromPayload(payload);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

const pollMs = 100;

/** Waits for executions of runs. */
interface RunExecutionWatch {
  /**
   * Waits until the execution of a run has closed, for `timeoutMs` at most; false when it has not. Its activities have
   * ended by then, since the workflow waits for them.
   * @throws ServiceError of @temporalio/client when Temporal does not respond in time
   */
  waitUntilClosed(run: RunInterval & { readonly run_id: string }, timeoutMs: number): Promise<boolean>;
}

/** Creates the watch, which polls Temporal. */
export const createRunExecutionWatch = (client: Client, settings: DeploymentSettings): RunExecutionWatch => ({
  waitUntilClosed: async (run, timeoutMs) => {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const latest = await describeExecution(client, workflowIds(settings).run(run));
      // An execution of another run started after this one closed, or will find that this run has ended.
      if (latest?.run_id !== run.run_id || latest.status !== 'RUNNING') return true;
      if (performance.now() + pollMs > deadline) return false;
      await sleep(pollMs);
    }
  },
});

type QueueSettings = Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>;

/** A name of `taskQueues`. */
type TaskQueueName = keyof ReturnType<typeof taskQueues>;

/** A task queue as Temporal sees it. */
export interface TaskQueueState {
  readonly name: TaskQueueName;
  /** Worker processes that have polled it lately and get its tasks. */
  readonly pollers: number;
  /** Tasks that wait for a worker, approximately. */
  readonly backlog: number;
  /** How long the oldest of them has waited; 0 without any. */
  readonly backlog_age_seconds: number;
}

/** A live worker polls at least once a minute. */
const maxPollAgeMs = 70_000;

/** The queue of schedules and runs has workflow tasks; the others have activities only. */
const typeOf = (name: TaskQueueName) =>
  name === 'control'
    ? proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    : proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY;

async function describe(client: Client, settings: QueueSettings, name: TaskQueueName, reportStats = false) {
  const { pollers, stats, versioningInfo } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: taskQueues(settings)[name] },
    taskQueueType: typeOf(name),
    reportStats,
  });
  const since = Date.now() - maxPollAgeMs;
  const alive = pollers.filter(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000 >= since);
  const current = versionOf(versioningInfo?.currentDeploymentVersion);
  const routed = new Set([current]);
  if (versioningInfo?.rampingVersionPercentage)
    routed.add(versionOf(versioningInfo.rampingDeploymentVersion));
  return {
    stats,
    current,
    identities: new Set(alive.map(({ identity }) => identity)),
    /** Those that get tasks: Temporal sends none to other versions than the current one and the one that ramps up. */
    served: new Set(
      alive
        .filter(({ deploymentOptions }) =>
          routed.has(
            deploymentOptions?.workerVersioningMode === versioned ? versionOf(deploymentOptions) : null,
          ),
        )
        .map(({ identity }) => identity),
    ),
  };
}

const versioned = proto.temporal.api.enums.v1.WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED;

/** A Worker Deployment Version as Temporal writes it; null for unversioned workers. */
const versionOf = (
  version: { readonly deploymentName?: string | null; readonly buildId?: string | null } | null | undefined,
): string | null => (version?.buildId ? `${version.deploymentName ?? ''}:${version.buildId}` : null);

/**
 * Counts the worker processes that get tasks of the control task queue, which runs schedules and runs.
 * @throws ServiceError of @temporalio/client when Temporal does not respond in time
 */
export async function countPollers(client: Client, settings: QueueSettings): Promise<number> {
  return (await describe(client, settings, 'control')).served.size;
}

/**
 * Says why no worker gets tasks of the control task queue.
 * @throws ServiceError of @temporalio/client when Temporal does not respond in time
 */
export async function describeIdlePollers(client: Client, settings: QueueSettings): Promise<string> {
  const { identities, current } = await describe(client, settings, 'control');
  if (identities.size === 0) return 'no worker is polling: run "exportd worker"';
  return (
    `${String(identities.size)} worker(s) poll, but Temporal sends tasks to ${current ?? 'unversioned workers'}: ` +
    'make their version current with "temporal worker deployment set-current-version"'
  );
}

/**
 * Whether the process with this identity polls the control task queue.
 * @throws ServiceError of @temporalio/client when Temporal does not respond in time
 */
export async function isPolling(client: Client, settings: QueueSettings, identity: string): Promise<boolean> {
  return (await describe(client, settings, 'control')).identities.has(identity);
}

/**
 * Describes every task queue. Temporal knows a backlog from 1.25 on; on older servers it is 0.
 * @throws ServiceError of @temporalio/client when Temporal does not respond in time
 */
export async function describeTaskQueues(client: Client, settings: QueueSettings): Promise<TaskQueueState[]> {
  const names = Object.keys(taskQueues(settings)) as TaskQueueName[];
  return Promise.all(
    names.map(async (name) => {
      const { stats, served } = await describe(client, settings, name, true);
      return {
        name,
        pollers: served.size,
        backlog: Number(stats?.approximateBacklogCount ?? 0),
        backlog_age_seconds: Number(stats?.approximateBacklogAge?.seconds ?? 0),
      };
    }),
  );
}

/** What starting an execution needs to know: also where the console is, for the links in the Temporal UI. */
export type StartSettings = ExecutionSettings & Pick<Settings, 'EXPORTD_BASE_URL'>;

/** Error handler for signals and cancellations, which closed executions do not need. */
export function ignoreNotFound(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

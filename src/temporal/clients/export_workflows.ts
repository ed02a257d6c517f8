import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  type WorkflowOptions,
} from '@temporalio/client';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import { forEachConcurrently } from '../../concurrency/keyed_semaphore.ts';
import type { Settings } from '../../config/settings.ts';
import {
  type BackfillInput,
  type RunInput,
  type ScheduleInput,
  wakeSignal,
  workflowIds,
  workflowTypes,
} from '../../contract/workflow_inputs.ts';
import {
  type DescribedExport,
  destinationUri,
  readDescribedExport,
} from '../../decisions/described_export.ts';
import { backfillTraceParent, type StartableRun } from '../../decisions/startable_runs.ts';
import { nominalLengthMs } from '../../domain/intervals.ts';
import { isInvalidRequest } from '../../failures/grpc_errors.ts';
import type { Pool } from '../../journal/database.ts';
import { inNewTrace, inTraceOf } from '../../tracing/spans.ts';
import { type ClientConnection, type ExecutionSettings, taskPriorities, taskQueues } from '../connections.ts';
import { ensureSearchAttributes } from '../search_attributes.ts';
import { describeExecution, isExecutionOf } from './executions.ts';
import { backfillMetadata, runMetadata, scheduleMetadata } from './user_metadata.ts';

/** Signals stored commands to the schedule of an export. */
interface ScheduleSignaller {
  /**
   * Signals the command's id under the command's name, and starts the workflow when it does not run.
   * @throws ServiceError of @temporalio/client when Temporal does not respond in time
   */
  signal(command: {
    readonly batch_export_id: string;
    readonly name: string;
    readonly id: string;
  }): Promise<void>;
}

/** Signals, starts and wakes schedule workflows. */
export interface ScheduleClient extends ScheduleSignaller {
  /** Wakes the workflow, if it runs. */
  wake(batchExportId: string): Promise<void>;
  /** Starts the workflow, or wakes it when it runs. The summary of a new execution shows the reason. */
  start(batchExportId: string, reason?: string): Promise<void>;
  /** Terminates a stuck execution and starts a new one, whose summary shows the reason. */
  restart(batchExportId: string, reason: string): Promise<void>;
}

/** What starting an execution needs to know: also where the console is, for the links in the Temporal UI. */
type StartSettings = ExecutionSettings & Pick<Settings, 'EXPORTD_BASE_URL'>;

/** Creates the client. It reads what the executions show from the control database. */
export function createScheduleClient(client: Client, pool: Pool, settings: StartSettings): ScheduleClient {
  const ids = workflowIds(settings);
  const optionsOf = async (batchExportId: string, reason?: string) => {
    const input: ScheduleInput = { batch_export_id: batchExportId };
    const described = await readDescribedExport(pool, batchExportId);
    return {
      workflowId: ids.schedule(batchExportId),
      taskQueue: taskQueues(settings).control,
      args: [input],
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      priority: {
        priorityKey: taskPriorities.schedule,
        ...(described && { fairnessKey: String(described.team_id) }),
      },
      typedSearchAttributes: [{ key: searchAttributes.batchExport, value: batchExportId }],
      ...scheduleMetadata(described, settings, reason),
    };
  };
  const signalWithStart = async (
    batchExportId: string,
    signal: string,
    signalArgs: unknown[],
    reason?: string,
  ) => {
    await client.workflow.signalWithStart(workflowTypes.schedule, {
      ...(await optionsOf(batchExportId, reason)),
      signal,
      signalArgs,
    });
  };
  return {
    signal: ({ batch_export_id, name, id }) => signalWithStart(batch_export_id, name, [{ command_id: id }]),
    wake: async (batchExportId) => {
      const handle = client.workflow.getHandle(ids.schedule(batchExportId));
      await handle.signal(wakeSignal).catch(ignoreNotFound);
    },
    start: (batchExportId, reason) => signalWithStart(batchExportId, wakeSignal, [], reason),
    restart: async (batchExportId, reason) => {
      await client.workflow.start(workflowTypes.schedule, {
        ...(await optionsOf(batchExportId, reason)),
        workflowIdConflictPolicy: 'TERMINATE_EXISTING',
      });
    },
  };
}

/** Error handler for signals and cancellations, which closed executions do not need. */
export function ignoreNotFound(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** Starts and wakes the workflows of backfills. */
export interface BackfillClient {
  /** Wakes the workflow, if it runs. */
  wake(backfillId: string): Promise<void>;
  /** Starts the workflow, or wakes it when it runs. The summary of a new execution shows the reason. */
  start(backfillId: string, reason?: string): Promise<void>;
  /** Terminates a stuck execution and starts a new one, whose summary shows the reason. */
  restart(backfillId: string, reason: string): Promise<void>;
  /** What the Temporal UI says of a backfill, in Markdown; undefined for an unknown one. */
  describe(backfillId: string): Promise<string | undefined>;
}

interface BackfillRow extends Omit<DescribedExport, 'id'> {
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly start_at: string;
  readonly end_at: string;
  readonly status: string;
  readonly destination_type: string;
  /** The trace of the command that created it, as a W3C `traceparent`. */
  readonly trace_parent: string | null;
}

/** Creates the client. It reads what the executions show from the control database. */
export function createBackfillClient(client: Client, pool: Pool, settings: StartSettings): BackfillClient {
  const ids = workflowIds(settings);
  const readBackfill = async (backfillId: string) => {
    const { rows } = await pool.query<BackfillRow>(
      `select backfill.batch_export_id, export.name, backfill.team_id, backfill.start_at, backfill.end_at, backfill.status,
         export.model, export.destination_type, export.interval, export.timezone,
         ${destinationUri('export.id', 'export.config_version')} as destination_uri,
         ${backfillTraceParent('backfill.id')} as trace_parent
       from exportd.backfills backfill join exportd.batch_exports export on export.id = backfill.batch_export_id
       where backfill.id = $1`,
      [backfillId],
    );
    return rows[0];
  };
  const metadataOf = (backfillId: string, row: BackfillRow, reason: string | undefined) =>
    backfillMetadata({ ...row, id: backfillId }, { ...row, id: row.batch_export_id }, settings, reason);
  const optionsOf = (backfillId: string, row: BackfillRow, reason: string | undefined) => {
    const input: BackfillInput = { backfill_id: backfillId };
    return {
      workflowId: ids.backfill(backfillId),
      taskQueue: taskQueues(settings).control,
      args: [input],
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      typedSearchAttributes: [
        { key: searchAttributes.batchExport, value: row.batch_export_id },
        { key: searchAttributes.name, value: row.name },
        { key: searchAttributes.project, value: String(row.team_id) },
        { key: searchAttributes.model, value: row.model },
        { key: searchAttributes.destination, value: row.destination_type },
        { key: searchAttributes.backfill, value: backfillId },
        { key: searchAttributes.status, value: row.status },
      ],
      ...metadataOf(backfillId, row, reason),
    };
  };
  /** Sends a request in the trace of the command that created the backfill. */
  const send = async (
    backfillId: string,
    reason: string | undefined,
    request: (options: ReturnType<typeof optionsOf>) => Promise<unknown>,
  ): Promise<void> => {
    const row = await readBackfill(backfillId);
    if (!row) return;
    const attributes = {
      'exportd.backfill_id': backfillId,
      'exportd.batch_export_id': row.batch_export_id,
    };
    await inTraceOf(row.trace_parent, 'start backfill', { attributes }, () =>
      request(optionsOf(backfillId, row, reason)),
    );
  };
  return {
    wake: async (backfillId) => {
      const handle = client.workflow.getHandle(ids.backfill(backfillId));
      await handle.signal(wakeSignal).catch(ignoreNotFound);
    },
    start: (backfillId, reason) =>
      send(backfillId, reason, (options) =>
        client.workflow.signalWithStart(workflowTypes.backfill, { ...options, signal: wakeSignal }),
      ),
    restart: (backfillId, reason) =>
      send(backfillId, reason, (options) =>
        client.workflow.start(workflowTypes.backfill, {
          ...options,
          workflowIdConflictPolicy: 'TERMINATE_EXISTING',
        }),
      ),
    describe: async (backfillId) => {
      const row = await readBackfill(backfillId);
      return row && metadataOf(backfillId, row, undefined).staticDetails;
    },
  };
}

/**
 * Creates the part of the schedule client that the HTTP API needs. It works before the first worker of a deployment has
 * started: the namespace then lacks exportd's search attributes, and rejects every start.
 */
export function createCommandSignaller(
  connected: ClientConnection,
  pool: Pool,
  settings: StartSettings & Pick<Settings, 'EXPORTD_REGISTER_SEARCH_ATTRIBUTES' | 'EXPORTD_COMMAND_TIMEOUT'>,
): ScheduleSignaller {
  const schedules = createScheduleClient(connected.client, pool, settings);
  return {
    signal: async (command) => {
      try {
        await schedules.signal(command);
      } catch (error) {
        if (!isInvalidRequest(error)) throw error;
        const timeout = AbortSignal.timeout(settings.EXPORTD_COMMAND_TIMEOUT);
        await ensureSearchAttributes(connected, settings, timeout);
        await schedules.signal(command);
      }
    },
  };
}

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

/** Larger intervals are published by an activity of their own, which has the whole retry budget for it. */
const maxRowsToPublish = 100_000;

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
      publish_with_rows: maxRowsToPublish,
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
  settings: RunSettings & StartSettings & Pick<Settings, 'EXPORTD_TEMPORAL_REQUEST_TIMEOUT'>,
  { takesFirstTask = false }: { readonly takesFirstTask?: boolean } = {},
): RunStarter {
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
      requestEagerStart: takesFirstTask,
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
        const deadline = Date.now() + settings.EXPORTD_TEMPORAL_REQUEST_TIMEOUT;
        if (await client.withDeadline(deadline, () => startFirst(run))) started.add(run.run_id);
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

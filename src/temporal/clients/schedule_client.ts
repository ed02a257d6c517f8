import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import type { Settings } from '../../config/settings.ts';
import {
  workflowIds,
  workflowTypes,
  type BackfillInput,
  type ScheduleInput,
  wakeSignal,
} from '../../contract/workflow_inputs.ts';
import { backfillTraceParent } from '../../decisions/create_run.ts';
import { isInvalidRequest } from '../../failures/grpc_errors.ts';
import type { Pool } from '../../journal/database.ts';
import { inTraceOf } from '../../tracing/spans.ts';
import { type ClientConnection, type ExecutionSettings, taskQueues } from '../connections.ts';
import { ensureSearchAttributes } from '../search_attributes.ts';
import { backfillSummary, withReason } from './executions.ts';

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

/** Creates the client. */
export function createScheduleClient(client: Client, settings: ExecutionSettings): ScheduleClient {
  const ids = workflowIds(settings);
  const optionsOf = (batchExportId: string, reason?: string) => {
    const input: ScheduleInput = { batch_export_id: batchExportId };
    return {
      workflowId: ids.schedule(batchExportId),
      taskQueue: taskQueues(settings).control,
      args: [input],
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      typedSearchAttributes: [{ key: searchAttributes.batchExport, value: batchExportId }],
      staticSummary: withReason('Schedule of a batch export', reason),
    };
  };
  const signalWithStart = async (
    batchExportId: string,
    signal: string,
    signalArgs: unknown[],
    reason?: string,
  ) => {
    await client.workflow.signalWithStart(workflowTypes.schedule, {
      ...optionsOf(batchExportId, reason),
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
        ...optionsOf(batchExportId, reason),
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
}

interface BackfillRow {
  readonly batch_export_id: string;
  readonly name: string;
  readonly team_id: number;
  readonly start_at: string;
  readonly end_at: string;
  readonly status: string;
  readonly model: string;
  readonly destination_type: string;
  /** The trace of the command that created it, as a W3C `traceparent`. */
  readonly trace_parent: string | null;
}

/** Creates the client. It reads what the executions show from the control database. */
export function createBackfillClient(
  client: Client,
  pool: Pool,
  settings: ExecutionSettings,
): BackfillClient {
  const ids = workflowIds(settings);
  const readBackfill = async (backfillId: string) => {
    const { rows } = await pool.query<BackfillRow>(
      `select backfill.batch_export_id, export.name, backfill.team_id, backfill.start_at, backfill.end_at, backfill.status,
         export.model, export.destination_type, ${backfillTraceParent('backfill.id')} as trace_parent
       from exportd.backfills backfill join exportd.batch_exports export on export.id = backfill.batch_export_id
       where backfill.id = $1`,
      [backfillId],
    );
    return rows[0];
  };
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
      staticSummary: withReason(backfillSummary(row), reason),
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
  };
}

/**
 * Creates the part of the schedule client that the HTTP API needs. It works before the first worker of a deployment has
 * started: the namespace then lacks exportd's search attributes, and rejects every start.
 */
export function createCommandSignaller(
  connected: ClientConnection,
  settings: ExecutionSettings &
    Pick<Settings, 'EXPORTD_REGISTER_SEARCH_ATTRIBUTES' | 'EXPORTD_COMMAND_TIMEOUT'>,
): ScheduleSignaller {
  const schedules = createScheduleClient(connected.client, settings);
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

import type { Client } from '@temporalio/client';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import type { Settings } from '../../config/settings.ts';
import { type ScheduleInput, wakeSignal } from '../../contract/workflow_inputs.ts';
import { workflowIds, workflowTypes } from '../../contract/workflow_ids.ts';
import { readDescribedExport } from '../../decisions/described_export.ts';
import { isInvalidRequest } from '../../failures/grpc_errors.ts';
import type { Pool } from '../../journal/database.ts';
import type { ClientConnection } from '../connections.ts';
import { taskPriorities, taskQueues } from '../task_queues.ts';
import { ensureSearchAttributes } from '../search_attributes.ts';
import { ignoreNotFound, type StartSettings } from './executions.ts';
import { scheduleMetadata } from './user_metadata.ts';

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

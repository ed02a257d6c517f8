import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { wakeSignal } from '../../contract/signals.ts';
import { workflowIds } from '../../contract/workflow_ids.ts';
import type { ScheduleInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { searchAttributes } from '../../../workflows/search_attributes.ts';
import { withReason } from './summaries.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** Signals stored commands to the schedule of an export. */
export interface ScheduleSignaller {
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

import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { wakeSignal } from '../../contract/signals.ts';
import { scheduleWorkflowId } from '../../contract/workflow_ids.ts';
import type { ScheduleInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { searchAttributes } from '../../../workflows/search_attributes.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** Tells an export's schedule workflow about a stored command. */
export interface ScheduleSignaller {
  /**
   * Signals the command's id under its name, and starts the workflow where it does not run.
   * @throws ServiceError of @temporalio/client when Temporal does not answer in time.
   */
  signal(command: {
    readonly batch_export_id: string;
    readonly name: string;
    readonly id: string;
  }): Promise<void>;
}

/** Workflows of schedules. */
export interface ScheduleClient extends ScheduleSignaller {
  /** Makes a running workflow look again; one that does not run has nothing to look at. */
  wake(batchExportId: string): Promise<void>;
  /** Starts the workflow where it does not run. */
  start(batchExportId: string): Promise<void>;
  /** Puts a fresh execution in the place of one that is stuck. */
  restart(batchExportId: string): Promise<void>;
}

/** Signals and starts schedule workflows. */
export function createScheduleClient(client: Client, settings: ExecutionSettings): ScheduleClient {
  const optionsOf = (batchExportId: string) => {
    const input: ScheduleInput = { batch_export_id: batchExportId };
    return {
      workflowId: scheduleWorkflowId(batchExportId),
      taskQueue: taskQueues(settings).control,
      args: [input],
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      typedSearchAttributes: [{ key: searchAttributes.batchExport, value: batchExportId }],
      staticSummary: 'Schedule of a batch export',
    };
  };
  const signalWithStart = async (batchExportId: string, signal: string, signalArgs: unknown[]) => {
    await client.workflow.signalWithStart(workflowTypes.schedule, {
      ...optionsOf(batchExportId),
      signal,
      signalArgs,
    });
  };
  return {
    signal: ({ batch_export_id, name, id }) => signalWithStart(batch_export_id, name, [{ command_id: id }]),
    wake: async (batchExportId) => {
      const handle = client.workflow.getHandle(scheduleWorkflowId(batchExportId));
      await handle.signal(wakeSignal).catch(ignoreNotFound);
    },
    start: (batchExportId) => signalWithStart(batchExportId, wakeSignal, []),
    restart: async (batchExportId) => {
      await client.workflow.start(workflowTypes.schedule, {
        ...optionsOf(batchExportId),
        workflowIdConflictPolicy: 'TERMINATE_EXISTING',
      });
    },
  };
}

/** The part of it that the HTTP facade needs. */
export const createScheduleSignaller: (client: Client, settings: ExecutionSettings) => ScheduleSignaller =
  createScheduleClient;

/** An execution that does not run any more is no error to whoever only wanted to tell it something. */
export function ignoreNotFound(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

import {
  WorkflowNotFoundError,
  type Client,
  type WorkflowExecutionInfo,
  type WorkflowExecutionStatusName,
  type WorkflowHandle,
} from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import { deterministicId } from '../../journal/journal.ts';
import { taskQueues } from '../task_queues.ts';

/** The latest execution of a workflow id, as Temporal knows it. */
export interface Execution {
  /** The run row that it belongs to, when it is the execution of a run. */
  readonly run_id: string | undefined;
  readonly temporal_run_id: string;
  readonly status: WorkflowExecutionStatusName;
  /** Which attempt of its current workflow task is under way; 0 when none is. */
  readonly task_attempt: number;
}

/** Describes the latest execution of a workflow id; undefined when Temporal knows none. */
export async function describeExecution(client: Client, workflowId: string): Promise<Execution | undefined> {
  try {
    const handle = client.workflow.getHandle(workflowId);
    const found = await handle.describe();
    return {
      run_id: runIdOf(found.memo),
      temporal_run_id: found.runId,
      status: found.status.name,
      task_attempt: found.raw.pendingWorkflowTask?.attempt ?? 0,
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** Lists the running executions of a workflow type on the task queue of this deployment. */
export const runningExecutions = (
  client: Client,
  settings: Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>,
  workflowType: string,
): AsyncIterable<WorkflowExecutionInfo> =>
  client.workflow.list({
    query: `WorkflowType = '${workflowType}' AND ExecutionStatus = 'Running' AND TaskQueue = '${taskQueues(settings).control}'`,
  });

/** How long after the end of an execution Temporal may take to say so. */
const silenceMs = 5_000;

/**
 * Waits for the result of an execution that Temporal ends within `executionMs`; the deadline is for the case that
 * Temporal itself goes away.
 * @throws WorkflowFailedError of @temporalio/client when the execution had no result.
 * @throws ServiceError of @temporalio/client when Temporal does not answer in time.
 */
export const resultWithin = (client: Client, handle: WorkflowHandle, executionMs: number): Promise<unknown> =>
  client.withDeadline(Date.now() + executionMs + silenceMs, () => handle.result());

/** The run row that an execution's memo names. */
export const runIdOf = (memo: Record<string, unknown> | undefined): string | undefined =>
  typeof memo?.run_id === 'string' ? memo.run_id : undefined;

/**
 * Whether an execution works for a run. That of the run before it does too, from the moment when the journal has handed
 * the export over until Temporal has made the next execution: what is done to it in between is done to this run.
 */
export const isExecutionOf = (run: { readonly run_id: string }, { run_id }: Execution): boolean =>
  run_id !== undefined && (run_id === run.run_id || deterministicId('continue', run_id) === run.run_id);

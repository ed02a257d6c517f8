import {
  WorkflowNotFoundError,
  type Client,
  type WorkflowExecutionStatusName,
  type WorkflowHandle,
} from '@temporalio/client';
import { deterministicId } from '../../journal/journal.ts';

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

/** How long Temporal may take to report the end of an execution. */
const reportDelayMs = 5_000;

/**
 * Waits for the result of an execution that Temporal ends within `executionMs`.
 * @throws WorkflowFailedError of @temporalio/client when the execution had no result
 * @throws ServiceError of @temporalio/client when Temporal does not respond in time
 */
export const resultWithin = (client: Client, handle: WorkflowHandle, executionMs: number): Promise<unknown> =>
  client.withDeadline(Date.now() + executionMs + reportDelayMs, () => handle.result());

/** The run in an execution's memo. */
export const runIdOf = (memo: Record<string, unknown> | undefined): string | undefined =>
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

import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { runWorkflowId } from '../../contract/workflow_ids.ts';
import { describeExecution } from './executions.ts';

/** How often it is asked whether an execution has ended. */
const pollMs = 100;

/** Watches executions of runs. */
export interface RunExecutionWatch {
  /**
   * Waits until the execution of a run has ended, for `timeoutMs` at most; false when it has not. A run's activities
   * have let go of everything by then, since its workflow waits for them.
   * @throws ServiceError of @temporalio/client when Temporal does not answer in time.
   */
  waitUntilClosed(
    run: Parameters<typeof runWorkflowId>[0] & { readonly run_id: string },
    timeoutMs: number,
  ): Promise<boolean>;
}

/** Watches the executions of a Temporal namespace. */
export const createRunExecutionWatch = (client: Client): RunExecutionWatch => ({
  waitUntilClosed: async (run, timeoutMs) => {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const latest = await describeExecution(client, runWorkflowId(run));
      // One of another run of the interval began after this one's had ended, or is about to find this one ended.
      if (latest?.run_id !== run.run_id || latest.status !== 'RUNNING') return true;
      if (performance.now() + pollMs > deadline) return false;
      await sleep(pollMs);
    }
  },
});

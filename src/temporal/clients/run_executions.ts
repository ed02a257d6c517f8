import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { workflowIds, type DeploymentSettings, type RunInterval } from '../../contract/workflow_ids.ts';
import { describeExecution } from './executions.ts';

const pollMs = 100;

/** Waits for executions of runs. */
export interface RunExecutionWatch {
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

import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import { workflowIds } from '../../contract/workflow_ids.ts';
import type { VerificationInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** Runs stored verifications on a worker. */
export interface VerificationClient {
  /** Starts one; its outcome is stored. Rejects when Temporal is not reachable. */
  start(verificationId: string): Promise<void>;
}

/** Below the time after which a verification without an outcome counts as failed. */
const timeoutMs = 55 * 60_000;

/** Starts a workflow for each verification. */
export function createVerificationClient(
  client: Client,
  settings: ExecutionSettings & Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT'>,
): VerificationClient {
  const queues = taskQueues(settings);
  return {
    start: async (verification_id) => {
      const input: VerificationInput = {
        verification_id,
        task_queue: queues.maintenance,
        timeout_ms: timeoutMs,
        heartbeat_timeout_ms: settings.EXPORTD_HEARTBEAT_TIMEOUT,
      };
      await client.workflow.start(workflowTypes.verification, {
        workflowId: workflowIds(settings).verification(verification_id),
        taskQueue: queues.control,
        args: [input],
        workflowExecutionTimeout: timeoutMs,
        workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
        staticSummary: 'Verification of an interval',
      });
    },
  };
}

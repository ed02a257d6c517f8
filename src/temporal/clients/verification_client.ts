import { type Client, WorkflowFailedError } from '@temporalio/client';
import { ActivityFailure, ApplicationFailure } from '@temporalio/common';
import type { Settings } from '../../config/settings.ts';
import {
  workflowIds,
  workflowTypes,
  type DestinationTestInput,
  type VerificationInput,
} from '../../contract/workflow_inputs.ts';
import type { TestStep } from '../../destination/bucket_test.ts';
import { type ExecutionSettings, taskQueues } from '../connections.ts';
import { resultWithin } from './executions.ts';

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

/** The outcome of a test: its steps, or the reason why there are none. */
export type TestOutcome =
  | { readonly tested: true; readonly steps: readonly TestStep[] }
  | { readonly tested: false; readonly reason: string };

/** Runs stored tests on a worker. */
export interface DestinationTestClient {
  /** Waits for the outcome. Rejects when Temporal is not reachable. */
  test(testId: string): Promise<TestOutcome>;
}

/** To open the config and to clean up, in addition to the steps. */
const overheadMs = 4_000;
/** How long a busy worker may take to start. */
const startDelayMs = 2_000;

/** Starts a workflow for each test. */
export function createDestinationTestClient(
  client: Client,
  settings: ExecutionSettings & Pick<Settings, 'EXPORTD_DESTINATION_TEST_TIMEOUT'>,
): DestinationTestClient {
  const timeout_ms = settings.EXPORTD_DESTINATION_TEST_TIMEOUT + overheadMs;
  const executionMs = timeout_ms + startDelayMs;
  return {
    test: async (test_id) => {
      const input: DestinationTestInput = { test_id, timeout_ms };
      const handle = await client.workflow.start(workflowTypes.destinationTest, {
        workflowId: workflowIds(settings).destinationTest(test_id),
        taskQueue: taskQueues(settings).control,
        args: [input],
        workflowExecutionTimeout: executionMs,
        workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
        staticSummary: 'Test of a destination',
      });
      try {
        const steps = await resultWithin(client, handle, executionMs);
        return { tested: true, steps: steps as readonly TestStep[] };
      } catch (error) {
        if (!(error instanceof WorkflowFailedError)) throw error;
        return { tested: false, reason: reasonOf(error) };
      }
    },
  };
}

/** The message of an activity's failure is for users. Without one, no worker ran the activity in time. */
function reasonOf({ cause }: WorkflowFailedError): string {
  const failure = cause instanceof ActivityFailure ? cause.cause : cause;
  return failure instanceof ApplicationFailure
    ? failure.message
    : 'No worker has tested the destination in time. Check that the workers run.';
}

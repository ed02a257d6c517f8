import { ActivityFailure, ApplicationFailure } from '@temporalio/common';
import { WorkflowFailedError, type Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import type { TestStep } from '../../destination/test_result.ts';
import { destinationTestWorkflowId } from '../../contract/workflow_ids.ts';
import type { DestinationTestInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { resultWithin } from './executions.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** What became of a test: its steps, or a sentence that says why there are none. */
export type TestOutcome =
  | { readonly tested: true; readonly steps: readonly TestStep[] }
  | { readonly tested: false; readonly reason: string };

/** Has stored tests carried out by a worker. */
export interface DestinationTestClient {
  /** Waits for the outcome. Rejects when Temporal cannot be reached. */
  test(testId: string): Promise<TestOutcome>;
}

/** Beyond the time of the steps: to open the config and to clean up, and for a worker that is busy to begin. */
const aroundMs = 4_000;
const beginningMs = 2_000;

/** Starts a workflow for each test. */
export function createDestinationTestClient(
  client: Client,
  settings: ExecutionSettings & Pick<Settings, 'EXPORTD_DESTINATION_TEST_TIMEOUT'>,
): DestinationTestClient {
  const longest_ms = settings.EXPORTD_DESTINATION_TEST_TIMEOUT + aroundMs;
  const executionMs = longest_ms + beginningMs;
  return {
    test: async (test_id) => {
      const input: DestinationTestInput = { test_id, timeout_ms: longest_ms };
      const handle = await client.workflow.start(workflowTypes.destinationTest, {
        workflowId: destinationTestWorkflowId(test_id),
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

/** Messages of failures of activities are written for users; every other ending means that no worker got so far. */
function reasonOf({ cause }: WorkflowFailedError): string {
  const failure = cause instanceof ActivityFailure ? cause.cause : cause;
  return failure instanceof ApplicationFailure
    ? failure.message
    : 'No worker has tested the destination in time; are they running?';
}

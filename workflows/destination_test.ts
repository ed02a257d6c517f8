import { ApplicationFailure, proxyLocalActivities } from '@temporalio/workflow';
import type { DestinationTestActivities } from '../activities/destination_test.ts';
import type { TestStep } from '../src/destination/bucket_test.ts';
import { isId, type DestinationTestInput } from '../src/contract/workflow_inputs.ts';
import { destinationTestOptions } from './activity_options.ts';

/**
 * Tests the destination of a stored config and returns the result of each step.
 * @throws ApplicationFailure `InvalidInput`
 */
export async function batchExportDestinationTest(
  input: DestinationTestInput | undefined,
): Promise<readonly TestStep[]> {
  if (!isId(input?.test_id) || typeof input.timeout_ms !== 'number')
    throw ApplicationFailure.nonRetryable('The input needs a test_id and a timeout_ms.', 'InvalidInput');
  const { testDestination } = proxyLocalActivities<DestinationTestActivities>(destinationTestOptions(input));
  return testDestination({ test_id: input.test_id });
}

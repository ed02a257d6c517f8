import { ApplicationFailure, proxyLocalActivities } from '@temporalio/workflow';
import type { DestinationTestActivities } from '../activities/destination_test.ts';
import type { TestStep } from '../src/destination/test_result.ts';
import { isId } from '../src/contract/workflow_ids.ts';
import type { DestinationTestInput } from '../src/contract/workflow_inputs.ts';
import { testPolicy } from './policies.ts';

/** Tests a destination whose config is stored for it, and returns what became of each step. */
export async function batchExportDestinationTest(input: DestinationTestInput): Promise<readonly TestStep[]> {
  if (!isId(input.test_id) || typeof input.longest_ms !== 'number')
    throw ApplicationFailure.nonRetryable(
      'The input has to name a test and how long it may take.',
      'InvalidInput',
    );
  const { testDestination } = proxyLocalActivities<DestinationTestActivities>(testPolicy(input));
  return testDestination({ test_id: input.test_id });
}

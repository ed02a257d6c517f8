import { ApplicationFailure, proxyActivities } from '@temporalio/workflow';
import type { VerificationActivities } from '../activities/verification.ts';
import { isId, type VerificationInput } from '../src/contract/workflow_inputs.ts';
import { verificationOptions } from './activity_options.ts';

/**
 * Verifies the interval of a stored request on a worker. The report is stored, and never part of the history.
 * @throws ApplicationFailure `InvalidInput`
 */
export async function batchExportVerification(input: VerificationInput | undefined): Promise<void> {
  // A manual start may pass any input.
  if (
    !isId(input?.verification_id) ||
    typeof input.task_queue !== 'string' ||
    typeof input.timeout_ms !== 'number' ||
    typeof input.heartbeat_timeout_ms !== 'number'
  )
    throw ApplicationFailure.nonRetryable(
      'The input needs a verification_id, a task_queue, a timeout_ms and a heartbeat_timeout_ms.',
      'InvalidInput',
    );
  const { verifyInterval } = proxyActivities<VerificationActivities>(verificationOptions(input));
  await verifyInterval({ verification_id: input.verification_id });
}

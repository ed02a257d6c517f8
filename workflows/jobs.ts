/**
 * Workflows that do one job each: a delivery, a verification, a test of a destination, a query. The control
 * database has the job and its outcome, an activity does it, and the workflow adds retries, waits and cancellation.
 */
import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  sleep,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { DestinationTestActivities } from '../activities/destination_test.ts';
import type { NotificationActivities } from '../activities/notification.ts';
import type { QueryActivities, QueryOutcomeActivities } from '../activities/query.ts';
import type { VerificationActivities } from '../activities/verification.ts';
import {
  type BackgroundQueryInput,
  type DestinationTestInput,
  isId,
  type NotificationInput,
  type VerificationInput,
} from '../src/contract/workflow_inputs.ts';
import type { TestStep } from '../src/destination/bucket_test.ts';
import type { DeliveryOutcome } from '../src/notifications/deliver.ts';
import {
  deliveryOptions,
  destinationTestOptions,
  journalOptions,
  queryOptions,
  searchAttributes,
  verificationOptions,
} from './activity_options.ts';

/**
 * Delivers one notification to one webhook, with retries. The control database holds the message, the number of
 * attempts and the deadline. The workflow only waits between attempts, so it can be terminated or restarted at any
 * time. Few attempts fit before the deadline, so its history stays short.
 * @throws ApplicationFailure `InvalidInput`
 */
export async function batchExportNotification(
  input: NotificationInput | undefined,
): Promise<Pick<DeliveryOutcome, 'delivered' | 'status' | 'detail'>> {
  // A manual start may pass any input.
  if (
    !isId(input?.delivery_id) ||
    typeof input.task_queue !== 'string' ||
    typeof input.timeout_ms !== 'number'
  )
    throw ApplicationFailure.nonRetryable(
      'The input needs a delivery_id, a task_queue and a timeout_ms.',
      'InvalidInput',
    );
  const { deliverNotification } = proxyActivities<NotificationActivities>(deliveryOptions(input));
  for (;;) {
    const { ended, wait_ms, summary, delivered, status, detail } = await deliverNotification({
      delivery_id: input.delivery_id,
    });
    setCurrentDetails(summary);
    if (ended) {
      upsertSearchAttributes([{ key: searchAttributes.status, value: delivered ? 'Delivered' : 'Failed' }]);
      return { delivered, status, detail };
    }
    // Never 0: the clocks of the database and of Temporal differ by milliseconds.
    await sleep(Math.max(20, wait_ms), { summary: 'until the next attempt' });
  }
}

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

const { recordBackgroundOutcome } = proxyLocalActivities<QueryOutcomeActivities>(journalOptions);

/**
 * Runs a background query: one activity, retried when its worker is lost. The query, its output and its error stay in
 * the control database; the workflow returns only the status.
 * @throws ApplicationFailure `InvalidInput`
 */
export async function backgroundQuery(
  input: BackgroundQueryInput | undefined,
): Promise<{ readonly status: string | null }> {
  // A manual start may pass any input.
  if (
    !isId(input?.execution_id) ||
    typeof input.task_queue !== 'string' ||
    typeof input.timeout_ms !== 'number' ||
    typeof input.heartbeat_timeout_ms !== 'number'
  )
    throw ApplicationFailure.nonRetryable(
      'The input needs an execution_id, a task_queue, a timeout_ms and a heartbeat_timeout_ms.',
      'InvalidInput',
    );
  const { execution_id } = input;
  const { runBackgroundQuery } = proxyActivities<QueryActivities>(queryOptions(input));
  try {
    return { status: await runBackgroundQuery({ execution_id }) };
  } catch (error) {
    // An attempt that fails while it is being cancelled is not retried, whatever the error.
    const cancelled = isCancellation(error) || CancellationScope.current().consideredCancelled;
    const status = cancelled ? 'cancelled' : 'failed';
    await CancellationScope.nonCancellable(() => recordBackgroundOutcome({ execution_id, status }));
    throw error;
  }
}

import {
  ApplicationFailure,
  proxyActivities,
  setCurrentDetails,
  sleep,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { NotificationActivities } from '../activities/notification.ts';
import type { NotificationInput } from '../src/contract/notification_input.ts';
import { isId } from '../src/contract/workflow_ids.ts';
import type { DeliveryOutcome } from '../src/notifications/deliver.ts';
import { searchAttributes } from './activity_options.ts';
import { deliveryOptions } from './delivery_options.ts';
import { until } from './summaries.ts';

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
    const sleepMs = Math.max(20, wait_ms);
    await sleep(sleepMs, until(sleepMs, 'the next attempt'));
  }
}

import {
  ApplicationFailure,
  proxyActivities,
  setCurrentDetails,
  sleep,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { NotifyActivities } from '../activities/notification.ts';
import type { DeliveryOutcome } from '../src/notifications/deliver.ts';
import { isId } from '../src/contract/workflow_ids.ts';
import type { NotificationInput } from '../src/contract/workflow_inputs.ts';
import { deliveryPolicy } from './policies.ts';
import { searchAttributes } from './search_attributes.ts';

/**
 * Tells one webhook one thing, again and again until it takes it. What is told, how often it was tried and when it is
 * given up is in the control database; this only waits between the attempts, so it may end or be started anew at any
 * time. Few attempts fit into the time that is given to it, so its history stays short.
 */
export async function batchExportNotification(
  input: NotificationInput,
): Promise<Pick<DeliveryOutcome, 'delivered' | 'status' | 'detail'>> {
  // May have been started by hand with anything.
  if (
    !isId(input.delivery_id) ||
    typeof input.task_queue !== 'string' ||
    typeof input.longest_ms !== 'number'
  )
    throw ApplicationFailure.nonRetryable(
      'The input has to name a delivery, a task queue and how long an attempt may take.',
      'InvalidInput',
    );
  const { deliverNotification } = proxyActivities<NotifyActivities>(deliveryPolicy(input));
  for (;;) {
    const { ended, wait_ms, summary, delivered, status, detail } = await deliverNotification({
      delivery_id: input.delivery_id,
    });
    setCurrentDetails(summary);
    if (ended) {
      const shown = delivered ? 'Delivered' : 'Failed';
      upsertSearchAttributes([{ key: searchAttributes.status, value: shown }]);
      return { delivered, status, detail };
    }
    // At least a little, since a time read in the database and a timer of Temporal never agree to the millisecond.
    await sleep(Math.max(20, wait_ms), { summary: 'until the next attempt' });
  }
}

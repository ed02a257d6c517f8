import { ApplicationFailure } from '@temporalio/common';
import { deliveryIds } from '../../../src/contract/notification_input.ts';
import { notificationTypes } from '../../../src/notifications/notification.ts';
import { createWebhookSecret } from '../../../src/notifications/send_webhook.ts';
import { createWebhook, deleteWebhook } from '../../../src/notifications/webhooks.ts';
import { startReceiver, type Receiver } from '../../notifications/receiver.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { lastHours, type ControlPlaneHarness } from '../../temporal/control_plane_harness.ts';
import { waitUntilIdle, type Scenario } from './scenario.ts';
import { readDeliveries } from '../../notifications/read_notifications.ts';

const teamId = 1;
const secret = createWebhookSecret();

async function withReceiver(use: (receiver: Receiver) => Promise<void>): Promise<void> {
  const receiver = await startReceiver(secret);
  try {
    await use(receiver);
  } finally {
    await receiver.close();
  }
}

async function storeWebhook(
  stack: ControlPlaneHarness,
  { url }: Receiver,
  batch_export: string | null,
): Promise<string> {
  const fields = { url, events: notificationTypes, format: 'json', batch_export, enabled: true } as const;
  const webhook = await createWebhook(stack.pool, stack.keyRing, teamId, fields, secret);
  if (!webhook) throw new Error('There are too many webhooks.');
  return webhook.id;
}

/** Lets a run fail, whose notification the receiver rejects once. */
async function startDelivery(stack: ControlPlaneHarness, receiver: Receiver) {
  receiver.respond = () => 503;
  stack.behaviour.duringExport = () =>
    Promise.reject(ApplicationFailure.nonRetryable('The bucket was deleted.', 'NoSuchBucket'));
  const id = await stack.createExport();
  const webhookId = await storeWebhook(stack, receiver, id);
  await stack.command(id, 'backfill', lastHours(1));
  const [delivery] = await stack.waitForReconciled(async () => {
    const attempted = (await readDeliveries(stack.pool, id)).filter(({ attempts }) => attempts > 0);
    return attempted.length > 0 && attempted;
  }, 'a delivery');
  return { webhookId, workflowId: deliveryIds(stack.settings).workflowId(delivery?.id ?? '') };
}

const settings = () => ({
  EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
  EXPORTD_WEBHOOK_RETRY_INITIAL: '2s',
  EXPORTD_WEBHOOK_TIMEOUT: '60s',
});

export const notificationScenarios: readonly Scenario[] = [
  {
    histories: ['notification-waiting', 'notification-delivered'],
    settings,
    play: (stack, record) =>
      withReceiver(async (receiver) => {
        const { workflowId } = await startDelivery(stack, receiver);
        await waitUntilIdle(stack, workflowId);
        await record('notification-waiting', workflowId);
        receiver.respond = () => 200;
        await stack.client.workflow.getHandle(workflowId).result();
        await record('notification-delivered', workflowId);
      }),
  },
  {
    histories: ['notification-cancelled'],
    settings: () => ({ ...settings(), EXPORTD_WEBHOOK_RETRY_INITIAL: '1m' }),
    play: (stack, record) =>
      withReceiver(async (receiver) => {
        const { webhookId, workflowId } = await startDelivery(stack, receiver);
        await deleteWebhook(stack.pool, teamId, webhookId);
        await waitFor(async () => {
          await stack.reconcile();
          const { status } = await stack.client.workflow.getHandle(workflowId).describe();
          return status.name === 'CANCELLED';
        }, 'the cancellation');
        await record('notification-cancelled', workflowId);
      }),
  },
];

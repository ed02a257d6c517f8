import { handlerOf, type JobHandler, type JobKind, type JobDependencies } from '../jobs/jobs.ts';
import { testNotificationData } from './notification.ts';
import { messageBody } from './message_body.ts';
import { type Attempt, sendWebhook } from './send_webhook.ts';
import { openWebhookSecret, openWebhookUrl, readWebhookToTest, showAttempt } from './webhooks.ts';

/** To read the webhook and to record the attempt, in addition to the request. */
const overheadMs = 10_000;

/** The test of a webhook, the target. */
export const webhookTestJob: JobKind<Record<string, never>, Attempt> = {
  name: 'webhook_test',
  workflowType: 'exportdWebhookTest',
  summary: 'Test of a webhook',
  limit: null,
  attempts: 1,
  timeoutMs: ({ EXPORTD_WEBHOOK_TIMEOUT }) => EXPORTD_WEBHOOK_TIMEOUT + overheadMs,
  isKept: false,
};

const undelivered = (detail: string): Attempt => ({ delivered: false, status: null, detail });

/**
 * Sends a message of the type `test` once, also to a disabled webhook. A receiver that rejects it is an answer, whatever its
 * status: the owner sees it and decides.
 */
export const createWebhookTestHandler = ({
  pool,
  keyRing,
  settings,
}: Pick<JobDependencies, 'pool' | 'keyRing' | 'settings'>): JobHandler =>
  handlerOf(webhookTestJob, async ({ id, team_id, target, created_at }) => {
    const webhook = await readWebhookToTest(pool, team_id, target);
    if (!webhook) return undelivered('The webhook was deleted.');
    const secret = openWebhookSecret(keyRing, target, webhook.sealed_secret);
    const url = openWebhookUrl(keyRing, target, webhook.sealed_url);
    const notification = { id, type: 'test', data: testNotificationData(team_id), created_at } as const;
    const attempt =
      secret === undefined || url === undefined
        ? undelivered("The webhook's secret cannot be decrypted with the keys of this installation.")
        : await sendWebhook(
            { id, url, secret, body: messageBody(webhook.format, notification, settings, url) },
            settings,
          );
    await showAttempt(pool, target, attempt);
    return attempt;
  });

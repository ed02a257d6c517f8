import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { readSettings } from '../../src/config/settings.ts';
import { createDeliverer } from '../../src/notifications/deliver.ts';
import { readCondition } from '../../src/projections/export_conditions.ts';
import { maxPendingDeliveries, resendDelivery } from '../../src/notifications/deliveries.ts';
import { findDelivery, listDeliveries } from '../../src/notifications/delivery_log.ts';
import { testNotificationData } from '../../src/notifications/notification.ts';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import { createWebhook, updateWebhook } from '../../src/notifications/webhooks.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { startReceiver, type Receiver } from './receiver.ts';

const teamId = 1;
const secret = createWebhookSecret();
const keyRing = createKeyRing(`test:${Buffer.alloc(32).toString('base64')}`);
const database = useTestDatabase();
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver(secret);
});
beforeEach(() => {
  receiver.respond = () => 204;
});
afterAll(() => receiver.close());

const settingsWith = (more: Record<string, string> = {}) =>
  readSettings({
    DATABASE_URL: 'postgres://127.0.0.1:1/unused',
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_WEBHOOK_TIMEOUT: '60s',
    EXPORTD_WEBHOOK_RETRY_INITIAL: '1m',
    ...more,
  });

async function createReceivingWebhook() {
  const path = randomUUID();
  const webhook = await createWebhook(
    database.pool,
    keyRing,
    teamId,
    {
      url: `${receiver.url}/${path}`,
      events: ['interval.published'],
      format: 'json',
      batch_export: null,
      enabled: true,
    },
    secret,
  );
  if (!webhook) throw new Error('There are too many webhooks.');
  const batchExportId = randomUUID();
  /** Stores that an interval was published, as the end of its run does. @returns the id of the delivery */
  const publish = async (generation: number, hour = 10) => {
    const { rows } = await database.pool.query<{ id: string }>(
      `with published as (
         insert into exportd.notifications (id, type, team_id, batch_export_id, data)
         values (gen_random_uuid(), 'interval.published', $1, $2, $3) returning id)
       insert into exportd.webhook_deliveries (notification_id, webhook_id, batch_export_id)
       select id, $4, $2 from published returning id`,
      [
        teamId,
        batchExportId,
        JSON.stringify({
          ...testNotificationData(teamId),
          batch_export_id: batchExportId,
          batch_export_name: 'Clicks',
          data_interval_start: `2026-11-01T${hour}:00:00.000Z`,
          data_interval_end: `2026-11-01T${hour + 1}:00:00.000Z`,
          manifest_key: 'manifest.json',
          generation,
          rows: 7,
          bytes: 70,
          files: 1,
        }),
        webhook.id,
      ],
    );
    return rows[0]?.id ?? '';
  };
  /** The generations of the messages, in the order in which they arrived. */
  const received = () =>
    receiver.messages.filter((message) => message.path === `/${path}`).map(({ data }) => data.generation);
  const makeDue = (id: string) =>
    database.pool.query(
      'update exportd.webhook_deliveries set next_attempt_at = clock_timestamp() where id = $1',
      [id],
    );
  return {
    id: webhook.id,
    batchExportId,
    publish,
    received,
    makeDue,
    deliver: (id: string, more?: Record<string, string>) =>
      createDeliverer(database.pool, keyRing, settingsWith(more), (id) => readCondition(database.pool, id))(
        id,
      ),
    find: (id: string) => findDelivery(database.pool, webhook.id, id),
  };
}

describe('deliveries of an interval', () => {
  it('wait until earlier generations of it are delivered', async () => {
    const one = await createReceivingWebhook();
    receiver.respond = () => 503;
    const [first, second] = [await one.publish(1), await one.publish(2)];
    expect(await one.deliver(second)).toMatchObject({ ended: false, wait_ms: 1_000 });
    expect(await one.deliver(first)).toMatchObject({ ended: false, delivered: false });
    // As long as the first one waits for its retry.
    const { wait_ms } = await one.deliver(second);
    expect(wait_ms).toBeGreaterThan(10_000);
    expect(one.received()).toEqual([1]);

    receiver.respond = () => 204;
    await one.makeDue(first);
    expect(await one.deliver(first)).toMatchObject({ ended: true, delivered: true });
    expect(await one.deliver(second)).toMatchObject({ ended: true, delivered: true });
    expect(one.received()).toEqual([1, 1, 2]);
  });

  it('do not wait for one that has failed, for another interval, or for a later generation', async () => {
    const one = await createReceivingWebhook();
    receiver.respond = () => 503;
    const failed = await one.publish(1);
    expect(await one.deliver(failed, { EXPORTD_WEBHOOK_RETRY_BUDGET: '0s' })).toMatchObject({ ended: true });
    await one.publish(1, 12);
    await one.publish(3);
    receiver.respond = () => 204;
    expect(await one.deliver(await one.publish(2))).toMatchObject({ ended: true, delivered: true });
  });
});

describe('the log of a webhook', () => {
  it('has every attempt with its result', async () => {
    const one = await createReceivingWebhook();
    const id = await one.publish(1);
    expect(await one.find(id)).toMatchObject({
      event: 'interval.published',
      status: 'pending',
      detail: null,
      attempts: 0,
      next_attempt_at: expect.any(String),
      ended_at: null,
      attempt_log: [],
    });
    receiver.respond = () => 503;
    await one.deliver(id);
    await one.makeDue(id);
    receiver.respond = () => 204;
    await one.deliver(id);
    expect(await one.find(id)).toMatchObject({
      status: 'delivered',
      detail: 'The receiver responded with 204.',
      attempts: 2,
      next_attempt_at: null,
      ended_at: expect.any(String),
      attempt_log: [
        {
          number: 1,
          status: 503,
          detail: 'The receiver responded with 503.',
          duration_ms: expect.any(Number),
        },
        { number: 2, status: 204, detail: 'The receiver responded with 204.', at: expect.any(String) },
      ],
    });
  });

  it('is listed newest first, by status, event and export', async () => {
    const one = await createReceivingWebhook();
    const ids = [await one.publish(1), await one.publish(1, 12), await one.publish(1, 13)];
    await one.deliver(ids[1] ?? '');
    const list = async (filter: Partial<Parameters<typeof listDeliveries>[2]>, limit = 10) => {
      const all = { statuses: undefined, events: undefined, batch_export: undefined, ...filter };
      const { count, results } = await listDeliveries(database.pool, one.id, all, { limit, offset: 0 });
      return { count, ids: results.map(({ id }) => id) };
    };
    expect(await list({}, 2)).toEqual({ count: 3, ids: [ids[2], ids[1]] });
    expect(await list({ statuses: ['delivered', 'failed'] })).toEqual({ count: 1, ids: [ids[1]] });
    expect((await list({ events: ['run.failed'] })).count).toBe(0);
    expect((await list({ batch_export: one.batchExportId })).count).toBe(3);
    expect((await list({ batch_export: randomUUID() })).count).toBe(0);
  });

  it('names why a delivery was dropped', async () => {
    const one = await createReceivingWebhook();
    const id = await one.publish(1);
    await updateWebhook(database.pool, keyRing, teamId, one.id, { enabled: false }, undefined);
    expect(await one.deliver(id)).toMatchObject({ ended: true, delivered: false });
    expect(await one.find(id)).toMatchObject({ status: 'dropped', detail: 'The webhook is disabled.' });
    expect(await resendDelivery(database.pool, one.id, id)).toEqual({ outcome: 'disabled' });
  });
});

describe('a resend', () => {
  it('is a new delivery of the same message', async () => {
    const one = await createReceivingWebhook();
    const id = await one.publish(1);
    await one.deliver(id);
    const resent = await resendDelivery(database.pool, one.id, id);
    if (resent.outcome !== 'created') throw new Error(`The outcome is ${resent.outcome}.`);
    expect(await one.find(resent.delivery_id)).toMatchObject({
      status: 'pending',
      resend_of: id,
      attempts: 0,
    });
    await one.deliver(resent.delivery_id);
    expect(one.received()).toEqual([1, 1]);
    const messageIds = receiver.messages.slice(-2).map((message) => message.id);
    expect(new Set(messageIds).size).toBe(1);
    expect(await one.find(id)).toMatchObject({ status: 'delivered', attempts: 1 });
  });

  it('advances the pending delivery instead of adding another one', async () => {
    const one = await createReceivingWebhook();
    receiver.respond = () => 503;
    const id = await one.publish(1);
    expect(await resendDelivery(database.pool, one.id, id)).toEqual({ outcome: 'due', delivery_id: id });
    await one.deliver(id);
    expect(await resendDelivery(database.pool, one.id, id)).toEqual({ outcome: 'advanced', delivery_id: id });
    expect(await one.deliver(id)).toMatchObject({ delivered: false, status: 503 });
    expect(one.received()).toHaveLength(2);

    const failed = await one.publish(1, 12);
    await one.deliver(failed, { EXPORTD_WEBHOOK_RETRY_BUDGET: '0s' });
    const [first, ...others] = await Promise.all(
      [1, 2, 3].map(() => resendDelivery(database.pool, one.id, failed)),
    );
    const deliveryIds = [first, ...others].map(
      (resent) => resent && 'delivery_id' in resent && resent.delivery_id,
    );
    expect(new Set(deliveryIds).size).toBe(1);
  });

  it('is rejected beyond the limit of pending deliveries', async () => {
    const one = await createReceivingWebhook();
    const id = await one.publish(1);
    await one.deliver(id);
    await database.pool.query(
      `with published as (
         insert into exportd.notifications (id, type, team_id, data)
         select gen_random_uuid(), 'run.failed', $1, '{}' from generate_series(1, $2) returning id)
       insert into exportd.webhook_deliveries (notification_id, webhook_id) select id, $3 from published`,
      [teamId, maxPendingDeliveries, one.id],
    );
    expect(await resendDelivery(database.pool, one.id, id)).toEqual({ outcome: 'full' });
  });

  it('needs a delivery of the webhook', async () => {
    const [one, other] = [await createReceivingWebhook(), await createReceivingWebhook()];
    const id = await one.publish(1);
    expect(await resendDelivery(database.pool, other.id, id)).toEqual({ outcome: 'not_found' });
    expect(await resendDelivery(database.pool, one.id, randomUUID())).toEqual({ outcome: 'not_found' });
    expect(await other.find(id)).toBeUndefined();
  });
});

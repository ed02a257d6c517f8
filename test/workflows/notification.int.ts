import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { notificationTypes, type NotificationType } from '../../src/notifications/notification.ts';
import { createWebhookSecret } from '../../src/notifications/signature.ts';
import { createWebhook, deleteWebhook, findWebhook } from '../../src/notifications/webhooks.ts';
import { startReceiver, type Receiver } from '../notifications/receiver.ts';
import { until } from '../setup/until.ts';
import { createControlStack, lastHours, type ControlStack } from '../temporal/control_plane_harness.ts';

const teamId = 1;
const secret = createWebhookSecret();
let stack: ControlStack;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver(secret);
  stack = await createControlStack({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_WEBHOOK_RETRY_INITIAL: '200ms',
    EXPORTD_WEBHOOK_TIMEOUT: '60s',
  });
  await stack.startWorker();
});
beforeEach(() => {
  receiver.respond = () => 200;
  stack.behaviour.whileExporting = () => Promise.resolve();
});
afterAll(async () => {
  await stack.close();
  await receiver.close();
});

/** An export with a webhook of its own. */
async function watchedExport(events: readonly NotificationType[] = notificationTypes) {
  const id = await stack.createExport();
  const webhook = await createWebhook(
    stack.pool,
    stack.keyRing,
    teamId,
    { url: `${receiver.url}/${id}?token=hidden`, events, batch_export: id, enabled: true },
    secret,
  );
  if (!webhook) throw new Error('There are too many webhooks.');
  const messages = () => receiver.messages.filter(({ path }) => path.startsWith(`/${id}`));
  const told = (count: number) =>
    stack.untilReconciled(() => messages().length >= count && messages(), `${count} messages`);
  const lines = async () =>
    (
      await stack.pool.query<{ level: string; message: string; run_id: string | null }>(
        `select level, message, run_id from exportd.log_lines where batch_export_id = $1
         and message like 'Webhook%' order by id`,
        [id],
      )
    ).rows;
  const deliveries = async () =>
    (
      await stack.pool.query<{ id: string; status: string; attempts: number }>(
        'select id, status, attempts from exportd.webhook_deliveries where batch_export_id = $1 order by created_at',
        [id],
      )
    ).rows;
  /** Begins a backfill of so many hours. */
  const run = async (hours: number) => {
    const { outcome } = await stack.command(id, 'backfill', lastHours(hours));
    return outcome?.backfill_id ?? '';
  };
  const handle = async (at = 0) => {
    const found = (await deliveries())[at];
    return stack.client.workflow.getHandle(`batch-export-notification-${found?.id ?? ''}`);
  };
  return { id, webhook, messages, told, lines, deliveries, run, handle };
}

const fail = () => {
  stack.behaviour.whileExporting = () =>
    Promise.reject(ApplicationFailure.nonRetryable('The bucket is gone.', 'NoSuchBucket'));
};

describe('the delivery of a notification', () => {
  it('tells of a run that Failed, signed, and the log says so', async () => {
    const one = await watchedExport();
    fail();
    const backfillId = await one.run(1);
    const [message] = await one.told(1);
    const [run] = await stack.runsOf(one.id);
    expect(message).toMatchObject({
      signed: true,
      type: 'run.failed',
      data: {
        project_id: teamId,
        batch_export_id: one.id,
        batch_export_name: expect.any(String),
        backfill_id: backfillId,
        run_id: run?.id,
        status: 'Failed',
        latest_error: 'NoSuchBucket: The bucket is gone.',
        data_interval_start: run?.data_interval_start,
        data_interval_end: run?.data_interval_end,
      },
    });
    expect(await (await one.handle()).result()).toEqual({
      delivered: true,
      status: 200,
      detail: 'The receiver responded with 200.',
    });
    // After the upkeep, and each project in its turn.
    const { raw } = await (await one.handle()).describe();
    expect(raw.workflowExecutionInfo?.priority).toMatchObject({
      priorityKey: 4,
      fairnessKey: String(teamId),
    });
    expect(await one.lines()).toEqual([
      {
        level: 'INFO',
        message: expect.stringMatching(
          new RegExp(
            `^Webhook ${one.webhook.id} \\(http://127\\.0\\.0\\.1:\\d+\\) was notified: the run of .* failed\\.$`,
          ),
        ),
        run_id: run?.id,
      },
    ]);
    expect((await one.lines())[0]?.message).not.toContain('hidden');
    const description = await (await one.handle()).describe();
    expect(description.type).toBe('batchExportNotification');
    expect(await description.staticSummary()).toContain(
      'run.failed of "Events every minute" to http://127.0.0.1',
    );
  });

  it('is tried again under the same id until the receiver takes it', async () => {
    const one = await watchedExport();
    let refusals = 2;
    receiver.respond = () => (refusals-- > 0 ? 503 : 200);
    fail();
    await one.run(1);
    const messages = await one.told(3);
    expect(new Set(messages.map(({ id }) => id)).size).toBe(1);
    expect(messages.every(({ signed }) => signed)).toBe(true);
    await (await one.handle()).result();
    expect((await one.lines()).map(({ level, message }) => [level, message])).toEqual([
      ['WARNING', expect.stringMatching(/could not be notified: .* responded with 503\. Retrying\.$/)],
      ['INFO', expect.stringContaining('was notified:')],
    ]);
    expect(await one.deliveries()).toMatchObject([{ status: 'delivered', attempts: 3 }]);
  });

  it('disables a webhook whose receiver is gone for good', async () => {
    const one = await watchedExport();
    receiver.respond = () => 410;
    fail();
    await one.run(1);
    await one.told(1);
    await (await one.handle()).result();
    expect(await findWebhook(stack.pool, teamId, one.webhook.id)).toMatchObject({
      enabled: false,
      last_delivery: { status: 410 },
    });
    expect((await one.lines())[0]).toMatchObject({
      level: 'ERROR',
      message: expect.stringContaining('The webhook has been disabled.'),
    });
    expect(await one.deliveries()).toMatchObject([{ status: 'failed' }]);
  });

  it('goes on after Temporal forgot it, and tells nothing twice that was taken', async () => {
    const one = await watchedExport();
    receiver.respond = () => 500;
    fail();
    await one.run(1);
    await one.told(1);
    const lost = await one.handle();
    await lost.terminate('as if it had never been');
    receiver.respond = () => 200;
    await until(async () => {
      await stack.reconcile();
      return (await one.deliveries())[0]?.status === 'delivered';
    }, 'the delivery after it was lost');
    const delivery = await one.handle();
    await until(async () => (await delivery.describe()).status.name !== 'RUNNING', 'its end');
    expect(new Set(one.messages().map(({ id }) => id)).size).toBe(1);
    const taken = one.messages().length;
    await stack.reconcile();
    expect(one.messages()).toHaveLength(taken);
  });

  it('ends with its webhook, and with its export', async () => {
    receiver.respond = () => 500;
    fail();
    const [one, other] = [await watchedExport(), await watchedExport()];
    for (const each of [one, other]) {
      await each.run(1);
      await each.told(1);
    }
    const handles = [await one.handle(), await other.handle()];
    await deleteWebhook(stack.pool, teamId, one.webhook.id);
    await stack.command(other.id, 'delete');
    expect(await other.deliveries()).toEqual([]);
    const executions = () => Promise.all(handles.map((handle) => handle.describe()));
    const ended = await until(async () => {
      await stack.reconcile();
      const found = await executions();
      return found.every(({ status }) => status.name !== 'RUNNING') && found;
    }, 'the end of both deliveries');
    // No message is counted: one may have been on its way at the end.
    await stack.reconcile();
    const runIds = (found: typeof ended) => found.map(({ runId }) => runId);
    expect(runIds(await executions())).toEqual(runIds(ended));
  });

  it('keeps no run waiting while a receiver hangs', async () => {
    const one = await watchedExport();
    receiver.respond = () => null;
    fail();
    await one.run(1);
    await one.told(1);
    stack.behaviour.whileExporting = () => Promise.resolve();
    const began = one.messages().length;
    await one.run(1);
    await stack.runIn(one.id, 'Completed');
    expect((await one.deliveries())[0]?.status).toBe('pending');
    receiver.respond = () => 200;
    receiver.disconnect();
    await until(async () => (await one.deliveries())[0]?.status === 'delivered', 'the delivery');
    expect(one.messages().length).toBeGreaterThan(began);
  });
});

describe('a backfill that pauses itself', () => {
  it('is told once, after its failures', async () => {
    const one = await watchedExport(['backfill.paused']);
    fail();
    const backfillId = await one.run(12);
    const [message] = await one.told(1);
    expect(message).toMatchObject({
      signed: true,
      type: 'backfill.paused',
      data: { backfill_id: backfillId, status: 'Paused', latest_error: 'NoSuchBucket: The bucket is gone.' },
    });
    await (await one.handle()).result();
    expect(one.messages()).toHaveLength(1);
  });
});

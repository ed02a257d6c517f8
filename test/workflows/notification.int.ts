import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { deliveryIds } from '../../src/contract/notification_input.ts';
import { incidentTypes, type NotificationType } from '../../src/notifications/notification.ts';
import { resendDelivery } from '../../src/notifications/deliveries.ts';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import { createNotificationClient } from '../../src/temporal/clients/notification_client.ts';
import { createWebhook, deleteWebhook, findWebhook } from '../../src/notifications/webhooks.ts';
import { startReceiver, type Receiver } from '../notifications/receiver.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';
import { readDeliveries } from '../notifications/read_notifications.ts';

const teamId = 1;
const secret = createWebhookSecret();
let stack: ControlPlaneHarness;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver(secret);
  stack = await createControlPlaneHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_WEBHOOK_RETRY_INITIAL: '200ms',
    EXPORTD_WEBHOOK_TIMEOUT: '60s',
  });
  await stack.startWorker();
});
beforeEach(() => {
  receiver.respond = () => 200;
  stack.behaviour.duringExport = () => Promise.resolve();
});
afterAll(async () => {
  await stack.close();
  await receiver.close();
});

/** Creates an export and a webhook for it. */
async function createWatchedExport(events: readonly NotificationType[] = incidentTypes) {
  const id = await stack.createExport();
  const webhook = await createWebhook(
    stack.pool,
    stack.keyRing,
    teamId,
    { url: `${receiver.url}/${id}?token=hidden`, events, format: 'json', batch_export: id, enabled: true },
    secret,
  );
  if (!webhook) throw new Error('There are too many webhooks.');
  const messages = () => receiver.messages.filter(({ path }) => path.startsWith(`/${id}`));
  const waitForMessages = (count: number) =>
    stack.waitForReconciled(() => messages().length >= count && messages(), `${count} messages`);
  const lines = async () =>
    (
      await stack.pool.query<{ level: string; message: string; run_id: string | null }>(
        `select level, message, run_id from exportd.log_lines where batch_export_id = $1
         and message like 'Webhook%' order by id`,
        [id],
      )
    ).rows;
  const deliveries = () => readDeliveries(stack.pool, id);
  /** Starts a backfill. */
  const run = async (hours: number) => {
    const { outcome } = await stack.command(id, 'backfill', lastHours(hours));
    return outcome?.backfill_id ?? '';
  };
  const handle = async (at = 0) => {
    const found = (await deliveries())[at];
    return stack.client.workflow.getHandle(deliveryIds(stack.settings).workflowId(found?.id ?? ''));
  };
  return { id, webhook, messages, waitForMessages, lines, deliveries, run, handle };
}

const fail = () => {
  stack.behaviour.duringExport = () =>
    Promise.reject(ApplicationFailure.nonRetryable('The bucket was deleted.', 'NoSuchBucket'));
};

describe('a delivery', () => {
  it('reports a failed run with a signed message, and is logged', async () => {
    const one = await createWatchedExport();
    fail();
    const backfillId = await one.run(1);
    const [message] = await one.waitForMessages(1);
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
        latest_error: 'NoSuchBucket: The bucket was deleted.',
        data_interval_start: run?.data_interval_start,
        data_interval_end: run?.data_interval_end,
      },
    });
    expect(await (await one.handle()).result()).toEqual({
      delivered: true,
      status: 200,
      detail: 'The receiver responded with 200.',
    });
    // Lower priority than maintenance, and fair between projects.
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

  it('names the manifest of a published interval, and is not logged unless it fails', async () => {
    const one = await createWatchedExport(['interval.published']);
    await one.run(1);
    const [message] = await one.waitForMessages(1);
    const run = (await stack.runsOf(one.id)).find(({ id }) => id === message?.data.run_id);
    expect(run?.status).toBe('Completed');
    expect(message).toMatchObject({
      signed: true,
      type: 'interval.published',
      data: {
        status: 'Completed',
        data_interval_start: run?.data_interval_start,
        manifest_key: 'manifest.json',
        generation: 1,
        // The fake export writes no files.
        rows: 0,
      },
    });
    await (await one.handle()).result();
    expect(await one.lines()).toEqual([]);
  });

  it('is attempted now when a person resends it, instead of at its next attempt', async () => {
    const one = await createWatchedExport();
    receiver.respond = () => 503;
    fail();
    await one.run(1);
    await one.waitForMessages(1);
    const handle = await one.handle();
    await waitFor(async () => {
      await stack.pool.query(
        `update exportd.webhook_deliveries set next_attempt_at = clock_timestamp() + interval '1 hour'
         where batch_export_id = $1`,
        [one.id],
      );
      const { currentDetails } = await handle.query<{ currentDetails: string }>(
        '__temporal_workflow_metadata',
      );
      const [delivery] = await one.deliveries();
      return (
        currentDetails === 'The delivery is not due yet.' && delivery?.attempts === one.messages().length
      );
    }, 'the wait for the next attempt');
    receiver.respond = () => 200;
    const [delivery] = await one.deliveries();
    const resent = await resendDelivery(stack.pool, one.webhook.id, delivery?.id ?? '');
    expect(resent.outcome).toBe('advanced');
    await createNotificationClient(stack.client, stack.pool, stack.settings).restart(delivery?.id ?? '');
    expect(await stack.client.workflow.getHandle(handle.workflowId).result()).toMatchObject({
      delivered: true,
    });
  });

  it('is retried with the same id until the receiver accepts it', async () => {
    const one = await createWatchedExport();
    let rejections = 2;
    receiver.respond = () => (rejections-- > 0 ? 503 : 200);
    fail();
    await one.run(1);
    const messages = await one.waitForMessages(3);
    expect(new Set(messages.map(({ id }) => id)).size).toBe(1);
    expect(messages.every(({ signed }) => signed)).toBe(true);
    await (await one.handle()).result();
    expect((await one.lines()).map(({ level, message }) => [level, message])).toEqual([
      ['WARNING', expect.stringMatching(/could not be notified: .* responded with 503\. Retrying\.$/)],
      ['INFO', expect.stringContaining('was notified:')],
    ]);
    expect(await one.deliveries()).toMatchObject([{ status: 'delivered', attempts: 3 }]);
  });

  it('waits until a worker has the key of its webhook, which is no failed attempt', async () => {
    const one = await createWatchedExport();
    const { rows } = await stack.pool.query<{ sealed: string }>(
      `update exportd.webhooks set secret = 'lost:AAAA' where id = $1
       returning (select secret from exportd.webhooks where id = $1) as sealed`,
      [one.webhook.id],
    );
    fail();
    await one.run(1);
    await stack.waitForReconciled(async () => (await one.deliveries()).length > 0, 'the delivery');
    const handle = await one.handle();
    await stack.waitForReconciled(async () => {
      // The delivery is stored before its workflow starts.
      const described = await handle.describe().catch(() => undefined);
      const failure = described?.raw.pendingActivities?.[0]?.lastFailure;
      return failure?.applicationFailureInfo?.type === 'SecretUnreadable';
    }, 'the first attempt');
    expect(await one.deliveries()).toMatchObject([{ status: 'pending', attempts: 0 }]);

    await stack.pool.query('update exportd.webhooks set secret = $2 where id = $1', [
      one.webhook.id,
      rows[0]?.sealed,
    ]);
    await one.waitForMessages(1);
    await handle.result();
    expect(await one.deliveries()).toMatchObject([{ status: 'delivered', attempts: 1 }]);
  });

  it('disables a webhook whose receiver responds with 410', async () => {
    const one = await createWatchedExport();
    receiver.respond = () => 410;
    fail();
    await one.run(1);
    await one.waitForMessages(1);
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

  it('continues after its execution was terminated, and is not repeated once accepted', async () => {
    const one = await createWatchedExport();
    receiver.respond = () => 500;
    fail();
    await one.run(1);
    await one.waitForMessages(1);
    const lost = await one.handle();
    await lost.terminate('Lost by Temporal.');
    receiver.respond = () => 200;
    await waitFor(async () => {
      await stack.reconcile();
      return (await one.deliveries())[0]?.status === 'delivered';
    }, 'the delivery after the termination');
    const delivery = await one.handle();
    await waitFor(async () => (await delivery.describe()).status.name !== 'RUNNING', 'its end');
    expect(new Set(one.messages().map(({ id }) => id)).size).toBe(1);
    const accepted = one.messages().length;
    await stack.reconcile();
    expect(one.messages()).toHaveLength(accepted);
  });

  it('ends when its webhook or its export is deleted', async () => {
    receiver.respond = () => 500;
    fail();
    const [one, other] = [await createWatchedExport(), await createWatchedExport()];
    for (const each of [one, other]) {
      await each.run(1);
      await each.waitForMessages(1);
    }
    const handles = [await one.handle(), await other.handle()];
    await deleteWebhook(stack.pool, teamId, one.webhook.id);
    await stack.command(other.id, 'delete');
    expect(await other.deliveries()).toMatchObject([{ status: 'dropped' }]);
    const executions = () => Promise.all(handles.map((handle) => handle.describe()));
    const ended = await waitFor(async () => {
      await stack.reconcile();
      const found = await executions();
      return found.every(({ status }) => status.name !== 'RUNNING') && found;
    }, 'the end of both deliveries');
    // Messages are not compared: one may have been in flight at the end.
    await stack.reconcile();
    const runIds = (found: typeof ended) => found.map(({ runId }) => runId);
    expect(runIds(await executions())).toEqual(runIds(ended));
  });

  it('delays no run while a receiver hangs', async () => {
    const one = await createWatchedExport();
    receiver.respond = () => null;
    fail();
    await one.run(1);
    await one.waitForMessages(1);
    stack.behaviour.duringExport = () => Promise.resolve();
    const messagesBefore = one.messages().length;
    await one.run(1);
    await stack.waitForRun(one.id, 'Completed');
    expect((await one.deliveries())[0]?.status).toBe('pending');
    receiver.respond = () => 200;
    receiver.disconnect();
    await waitFor(async () => (await one.deliveries())[0]?.status === 'delivered', 'the delivery');
    expect(one.messages().length).toBeGreaterThan(messagesBefore);
  });
});

describe('a backfill that is paused after failures', () => {
  it('is reported once', async () => {
    const one = await createWatchedExport(['backfill.paused']);
    fail();
    const backfillId = await one.run(12);
    const [message] = await one.waitForMessages(1);
    expect(message).toMatchObject({
      signed: true,
      type: 'backfill.paused',
      data: {
        backfill_id: backfillId,
        status: 'Paused',
        latest_error: 'NoSuchBucket: The bucket was deleted.',
      },
    });
    await (await one.handle()).result();
    expect(one.messages()).toHaveLength(1);
  });
});

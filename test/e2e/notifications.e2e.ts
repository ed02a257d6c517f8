import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import { startReceiver, type Receiver } from '../notifications/receiver.ts';
import { waitFor } from '../setup/wait_for.ts';
import { makeMinutesDue } from './due_minutes.ts';
import { readManifest } from './rows.ts';
import { startStack, type Stack } from './stack.ts';

const secret = createWebhookSecret();
let stack: Stack;
let receiver: Receiver;
/** Receives published intervals only. */
let pipeline: Receiver;
beforeAll(async () => {
  receiver = await startReceiver(secret);
  pipeline = await startReceiver(secret);
  stack = await startStack('notifications', {
    EXPORTD_MAX_CONCURRENT_RUNS: '1',
    EXPORTD_WEBHOOK_RETRY_INITIAL: '300ms',
    EXPORTD_LOG_RETENTION: '10m',
  });
});
afterAll(async () => {
  await stack.stop();
  await receiver.close();
  await pipeline.close();
});

const typesOf = () => [...new Map(receiver.messages.map(({ id, type }) => [id, type])).values()];
const linesOf = async (exportId: string, search: string) => {
  const { body } = await stack.call('GET', `/batch_exports/${exportId}/logs/?search=${search}&limit=1000`);
  return (body.results as { message: string }[]).map(({ message }) => message);
};

describe('an export whose bucket does not exist', () => {
  it('sends a notification for each failed run, pauses itself, and sends one when it recovers', async () => {
    // Created before the export, whose first run can start immediately when a minute ends.
    const created = await stack.call('POST', '/webhooks/', { url: receiver.url, secret });
    expect(created.status).toBe(201);
    let failuresLeft = 1;
    receiver.respond = () => (failuresLeft-- > 0 ? 500 : 202);
    const id = await stack.createExport({ interval: 'every 1 minutes' }, { bucket_name: 'there-is-none' });
    await makeMinutesDue(stack, id, 6);
    const renamed = await stack.call('PATCH', `/batch_exports/${id}/`, { name: 'Due' });
    expect(renamed.status).toBe(200);

    const readExport = async () => (await stack.call('GET', `/batch_exports/${id}/`)).body;
    await waitFor(async () => (await readExport()).paused, 'the export paused itself');
    expect((await readExport()).last_paused_at).toEqual(expect.any(String));
    const failed = await stack.runs(id);
    expect(failed.map(({ status }) => status)).toEqual(['Failed', 'Failed', 'Failed']);
    await waitFor(
      () => typesOf().length === 4 && receiver.messages.length === 5,
      'the notification of the pause',
    );
    expect(typesOf().sort()).toEqual(['batch_export.paused', 'run.failed', 'run.failed', 'run.failed']);
    expect(receiver.messages.find(({ type }) => type === 'batch_export.paused')?.data).toMatchObject({
      batch_export_id: id,
      batch_export_name: 'Due',
      status: 'Paused',
      run_id: failed[0]?.id,
      latest_error: failed[0]?.latest_error,
    });

    const fixed = await stack.call('PATCH', `/batch_exports/${id}/`, {
      destination: { type: 'S3', config: { bucket_name: stack.bucket.bucket } },
    });
    expect(fixed.status).toBe(200);
    expect((await stack.call('POST', `/batch_exports/${id}/unpause/`)).status).toBe(200);
    await waitFor(() => typesOf().includes('batch_export.recovered'), 'the notification of the recovery');
    await waitFor(
      async () => (await stack.runs(id)).filter(({ status }) => status === 'Completed').length >= 3,
      'the due intervals are Completed',
    );
    expect(typesOf().filter((type) => type === 'batch_export.recovered')).toHaveLength(1);

    expect(receiver.messages.every(({ signed }) => signed)).toBe(true);
    const [first] = receiver.messages;
    const times = receiver.messages.filter((message) => message.id === first?.id).length;
    expect([times, receiver.messages.length]).toEqual([2, 6]);
    expect(receiver.messages.map(({ data }) => data.batch_export_id)).toEqual(Array(6).fill(id));

    await waitFor(async () => (await linesOf(id, 'Webhook')).length === 6, 'six lines about the webhook');
    const lines = await linesOf(id, 'Webhook');
    expect(lines.filter((line) => line.includes('could not be notified: the run of'))).toHaveLength(1);
    expect(lines.filter((line) => / was notified: the run of .* failed\.$/.test(line))).toHaveLength(3);
    expect(lines.filter((line) => line.includes('was paused after'))).toHaveLength(1);
    expect(lines.filter((line) => line.includes('recovered with'))).toHaveLength(1);
    expect(await linesOf(id, 'Paused%20the%20batch%20export%3A')).toEqual([
      expect.stringMatching(/last 3 scheduled runs Failed\. Latest error: NoSuchBucket: .*unpause/),
    ]);
  });

  it('sends a notification for each interval that it publishes then, with a manifest that is in the bucket', async () => {
    const created = await stack.call('POST', '/webhooks/', {
      url: pipeline.url,
      secret,
      events: ['interval.published'],
    });
    expect(created.status).toBe(201);
    const id = await stack.createExport({ interval: 'every 1 minutes' });
    await makeMinutesDue(stack, id, 3);
    const ofExport = () => pipeline.messages.filter(({ data }) => data.batch_export_id === id);
    await waitFor(() => ofExport().length >= 3, 'the notifications of three intervals');
    for (const { type, signed, data } of ofExport()) {
      expect([type, signed]).toEqual(['interval.published', true]);
      expect(await readManifest(stack.bucket, String(data.manifest_key))).toMatchObject({
        run_id: data.run_id,
        generation: data.generation,
        rows: data.rows,
        data_interval_start: data.data_interval_start,
      });
    }
    const deliveries = `/webhooks/${String(created.body.id)}/deliveries`;
    const newest = await waitFor(async () => {
      const { body } = await stack.call('GET', `${deliveries}/?batch_export=${id}&status=delivered`);
      return (body.results as { id: string; message_id: string }[])[0];
    }, 'a delivery in the log');
    const resent = await stack.call('POST', `${deliveries}/${newest.id}/resend/`);
    expect(resent.status).toBe(201);
    await waitFor(
      () => pipeline.messages.filter((message) => message.id === newest.message_id).length === 2,
      'the message that is sent again',
    );
  });

  it('loses only the log lines that are older than the retention', async () => {
    const id = await stack.createExport();
    await stack.pool.query(
      `insert into exportd.log_lines (team_id, batch_export_id, level, message, timestamp)
       select $1, $2, 'INFO', 'Of ' || minutes || ' minutes ago', clock_timestamp() - minutes * interval '1 minute'
       from unnest(array[5, 11, 12]) minutes`,
      [stack.projectId, id],
    );
    await waitFor(async () => (await linesOf(id, 'minutes')).length === 1, 'the old lines are deleted');
    expect(await linesOf(id, 'minutes')).toEqual(['Of 5 minutes ago']);
  });

  it('can have its webhook tested by a worker', async () => {
    receiver.respond = () => 202;
    const created = await stack.call('POST', '/webhooks/', { url: `${receiver.url}/tested`, secret });
    const tested = await stack.call('POST', `/webhooks/${String(created.body.id)}/test/`);
    expect([tested.status, tested.body]).toEqual([
      200,
      { delivered: true, status: 202, detail: 'The receiver responded with 202.' },
    ]);
    expect(receiver.messages.at(-1)).toMatchObject({ path: '/tested', type: 'test', signed: true });
  });
});

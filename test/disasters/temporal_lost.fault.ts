import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { blockRequests } from '../e2e/request_gate.ts';
import { makeMinutesDue } from '../e2e/due_minutes.ts';
import { insertEvents } from '../e2e/rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from '../e2e/s3_proxy.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { verifyExport } from '../e2e/verify_export.ts';
import { createBucket } from '../setup/bucket.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { startsPerInterval } from './run_starts.ts';
import { startOwnTemporal, type OwnTemporal } from './temporal_server.ts';

const hours = 16;
const rowsPerHour = 40;

describe('after the database of Temporal was deleted', () => {
  let temporal: OwnTemporal;
  let proxy: S3Proxy;
  let stack: Stack;
  beforeAll(async () => {
    temporal = await startOwnTemporal();
    const bucket = await createBucket();
    proxy = await createS3Proxy(bucket.endpoint);
    stack = await startStack(
      'temporal-lost',
      {
        ...failoverWorkers,
        TEMPORAL_ADDRESS: temporal.address,
        EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '10s',
        EXPORTD_COMMAND_TIMEOUT: '10s',
        EXPORTD_RECONCILE_INTERVAL: '1s',
      },
      { bucket: { ...bucket, endpoint: proxy.endpoint } },
    );
    for (let hour = hours; hour > 0; hour -= 1)
      await insertEvents(stack.pool, stack.projectId, hourAgo(hour), rowsPerHour);
  });
  afterAll(async () => {
    await stack.stop();
    await proxy.close();
    await temporal.close();
  });

  const statuses = async (id: string) => (await stack.runs(id)).map(({ status }) => status);
  const completed = async (id: string) =>
    (await statuses(id)).filter((status) => status === 'Completed').length;
  const lossless = async (id: string) => {
    const { findings } = await verifyExport(stack, id);
    expect(findings).toEqual([]);
  };

  it('schedules, a backfill and pending commands continue, nothing is lost and nothing runs twice', async () => {
    const idle = await stack.createExport();
    const halfway = await stack.createExport({}, { prefix: 'halfway' });
    const isFile = ({ operation, key }: ProxiedRequest) =>
      operation === 'PutObject' && key.startsWith('halfway/');
    const exporting = blockRequests(proxy, 'a file of the backfill', {
      when: 'before',
      // Each run puts two objects, so about five runs have completed by then.
      matches: (request) =>
        isFile(request) && proxy.requests.filter((one) => isFile(one) && one.ended).length >= 16,
    });
    const accepted = await stack.call('POST', `/batch_exports/${halfway}/backfill/`, {
      start_at: hourAgo(hours).toISOString(),
      end_at: hourAgo(0).toISOString(),
    });
    expect(accepted.status).toBe(200);
    await waitFor(
      async () => exporting.waiting.length >= 2 && (await completed(halfway)) >= 4,
      'half the backfill',
    );

    const live = await stack.createExport({ interval: 'every 1 minutes' });
    // The workflow of this export never receives its signal, which is lost with the database.
    const [worker] = stack.workers;
    worker?.pause();
    const pause = await stack.call('POST', `/batch_exports/${idle}/pause/`);
    expect(pause.status).toBe(202);
    await temporal.kill();
    temporal.deleteDatabase();
    worker?.resume();
    const response = await stack.call('POST', `/batch_exports/${idle}/backfill/`, {
      start_at: hourAgo(2).toISOString(),
      end_at: hourAgo(1).toISOString(),
    });
    // The worker may have held a workflow task of that schedule, which decides every pending command.
    expect([200, 503]).toContain(response.status);
    expect(await completed(halfway)).toBeLessThan(hours);
    const causeOf = async (id: string) =>
      ((await stack.call('GET', `/batch_exports/${id}/`)).body.condition as { cause: string }).cause;
    await waitFor(
      async () => (await causeOf(live)) === 'temporal_unavailable',
      'the condition names Temporal',
    );
    await temporal.start();
    const backAt = Date.now();
    // Saves waiting for the end of a minute. Only in the middle of an hour: otherwise the rows would belong to the backfill.
    const addsDueMinutes =
      Date.now() - hourAgo(0).getTime() > 3 * 60_000 && (await stack.runs(live)).length === 0;
    if (addsDueMinutes) await makeMinutesDue(stack, live, 2);
    exporting.open();

    await waitFor(async () => (await completed(halfway)) === hours, 'the whole backfill');
    await waitFor(
      async () => (await causeOf(halfway)) !== 'temporal_unavailable',
      'the condition to recover',
    );
    expect(new Set(await statuses(halfway))).toEqual(new Set(['Completed']));
    await waitFor(
      async () =>
        (await stack.runs(live)).some(
          ({ status, created_at }) => status === 'Completed' && Date.parse(created_at) > backAt,
        ),
      'the schedule continues',
    );
    await waitFor(
      async () => (await stack.call('GET', `/batch_exports/${idle}/`)).body.paused === true,
      'the pending pause',
    );
    const expected = response.status === 200 ? ['Completed'] : [];
    await waitFor(
      async () => (await statuses(idle)).join() === expected.join(),
      'the runs match the response',
    );
    for (const id of [live, halfway]) {
      await lossless(id);
      const starts = await startsPerInterval(stack.pool, id);
      expect(starts.filter(({ started }) => started !== 1)).toEqual([]);
      expect(new Set(await statuses(id))).not.toContain('Terminated');
    }
    // The same processes: they reconnected to the new server.
    expect(stack.workers).toHaveLength(1);
    expect(() => process.kill(worker?.pid ?? 0, 0)).not.toThrow();
  });
});

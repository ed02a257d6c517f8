import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { insertEvents } from '../e2e/rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { verifyExport } from '../e2e/verify_export.ts';
import { waitFor } from '../setup/wait_for.ts';
import { startBlackholeServer, type BlackholeServer } from './blackhole_server.ts';

const slots = 2;
const hours = 3;
const goodExports = 5;

describe('beside exports that fail or hang', () => {
  let stack: Stack;
  let blackhole: BlackholeServer;
  beforeAll(async () => {
    blackhole = await startBlackholeServer();
    stack = await startStack('poison-exports', {
      EXPORTD_EXPORT_SLOTS: String(slots),
      EXPORTD_SLOT_YIELD_AFTER: '500ms',
    });
    for (let hour = hours; hour > 0; hour -= 1)
      await insertEvents(stack.pool, stack.projectId, hourAgo(hour), 100);
  });
  afterAll(async () => {
    await stack.stop();
    await blackhole.close();
  });

  const backfill = async (id: string, from: number) => {
    const { status } = await stack.call('POST', `/batch_exports/${id}/backfill/`, {
      start_at: hourAgo(from).toISOString(),
      end_at: hourAgo(0).toISOString(),
    });
    expect(status).toBe(200);
  };
  const statuses = async (id: string) => (await stack.runs(id)).map(({ status }) => status);
  const areAll = async (id: string, status: string) => {
    const seen = await statuses(id);
    return seen.length === hours && seen.every((one) => one === status);
  };

  it('with more hanging buckets than slots, the others complete', async () => {
    const poison = [
      await stack.createExport({}, { endpoint_url: blackhole.endpoint }),
      await stack.createExport({}, { endpoint_url: blackhole.endpoint }),
    ];
    for (const id of poison) await backfill(id, hours);
    await waitFor(() => blackhole.accepted() >= slots, 'every slot has a hanging export');
    const good: string[] = [];
    for (let count = 0; count < goodExports; count += 1) good.push(await stack.createExport());
    for (const id of good) await backfill(id, hours);
    for (const id of good) await waitFor(() => areAll(id, 'Completed'), `the export ${id} completes`);
    for (const id of poison) await waitFor(() => areAll(id, 'Running'), `the export ${id} still hangs`);
    for (const id of good) expect((await verifyExport(stack, id)).findings).toEqual([]);
    for (const id of poison) await stack.call('DELETE', `/batch_exports/${id}/`);
  });

  it('with a huge backfill, the others complete', async () => {
    const huge = await stack.createExport();
    await backfill(huge, 600);
    await waitFor(async () => (await statuses(huge)).includes('Completed'), 'the huge backfill is under way');
    const good = await stack.createExport();
    await backfill(good, hours);
    await waitFor(() => areAll(good, 'Completed'), 'the export completes');
    const { body } = await stack.call('GET', `/batch_exports/${huge}/backfills/`);
    expect(body.results).toMatchObject([{ finished_at: null }]);
    await stack.call('DELETE', `/batch_exports/${huge}/`);
  });
});

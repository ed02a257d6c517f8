import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { insertEvents } from '../e2e/rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { verified } from '../e2e/verified.ts';
import { until } from '../setup/until.ts';
import { startSilentServer, type SilentServer } from './silent_server.ts';

const slots = 2;
const hours = 3;
const goodExports = 5;

describe('beside exports that make trouble', () => {
  let stack: Stack;
  let silent: SilentServer;
  beforeAll(async () => {
    silent = await startSilentServer();
    stack = await startStack('poison-exports', {
      EXPORTD_EXPORT_SLOTS: String(slots),
      EXPORTD_SLOT_YIELD_AFTER: '500ms',
    });
    for (let hour = hours; hour > 0; hour -= 1)
      await insertEvents(stack.pool, stack.projectId, hourAgo(hour), 100);
  });
  afterAll(async () => {
    await stack.stop();
    await silent.close();
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

  it('whose buckets hang, more of them at once than there are slots, the others complete', async () => {
    const poison = [
      await stack.createExport({}, { endpoint_url: silent.endpoint }),
      await stack.createExport({}, { endpoint_url: silent.endpoint }),
    ];
    for (const id of poison) await backfill(id, hours);
    await until(() => silent.taken() >= slots, 'every slot is taken by one that hangs');
    const good: string[] = [];
    for (let count = 0; count < goodExports; count += 1) good.push(await stack.createExport());
    for (const id of good) await backfill(id, hours);
    for (const id of good) await until(() => areAll(id, 'Completed'), `the export ${id} completes`);
    for (const id of poison) await until(() => areAll(id, 'Running'), `the export ${id} still hangs`);
    for (const id of good) expect((await verified(stack, id)).findings).toEqual([]);
    for (const id of poison) await stack.call('DELETE', `/batch_exports/${id}/`);
  });

  it('that have a great many intervals to export, the others complete', async () => {
    const huge = await stack.createExport();
    await backfill(huge, 600);
    await until(async () => (await statuses(huge)).includes('Completed'), 'the huge backfill is under way');
    const good = await stack.createExport();
    await backfill(good, hours);
    await until(() => areAll(good, 'Completed'), 'the export completes');
    const { body } = await stack.call('GET', `/batch_exports/${huge}/backfills/`);
    expect(body.results).toMatchObject([{ finished_at: null }]);
    await stack.call('DELETE', `/batch_exports/${huge}/`);
  });
});

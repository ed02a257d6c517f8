import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { insertEvents } from '../e2e/rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { verifyExport } from '../e2e/verify_export.ts';
import { waitFor } from '../setup/wait_for.ts';
import { startBlackholeServer, type BlackholeServer } from './blackhole_server.ts';

const slots = 2;
const hours = 3;
/** More runs of unavailable buckets than slots, and than slots that may be yielded. */
const unavailableExports = 4;
const unavailableHours = 4;
/** The exports take seconds alone. When each attempt held its slot until its request failed, they took minutes. */
const isolatedMs = 120_000;
/** Nothing listens there. */
const refusingEndpoint = 'http://127.0.0.1:1';

describe('beside exports that fail or hang', () => {
  let stack: Stack;
  let blackhole: BlackholeServer;
  beforeAll(async () => {
    blackhole = await startBlackholeServer();
    stack = await startStack('poison-exports', {
      EXPORTD_EXPORT_SLOTS: String(slots),
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
  const errorsOf = async (id: string) =>
    (await stack.runs(id)).flatMap(({ status, latest_error }) =>
      status === 'Starting' || status === 'Running' ? [latest_error ?? ''] : [],
    );

  it.each([
    ['never respond', () => blackhole.endpoint],
    ['refuse connections', () => refusingEndpoint],
  ])('whose buckets %s, a healthy one completes, and deleting them ends their runs', async (_, endpoint) => {
    const unavailable: string[] = [];
    for (let count = 0; count < unavailableExports; count += 1)
      unavailable.push(
        await stack.createExport({}, { endpoint_url: endpoint(), bucket_name: `unavailable-${count}` }),
      );
    for (const id of unavailable) await backfill(id, unavailableHours);
    await waitFor(async () => {
      const errors = await Promise.all(unavailable.map(errorsOf));
      return errors.every(
        (of) => of.length > 0 && of.every((error) => error.startsWith('DestinationUnavailable: ')),
      );
    }, 'every run of an unavailable bucket says what it waits for');
    const healthy = await stack.createExport();
    await backfill(healthy, hours);
    await waitFor(() => areAll(healthy, 'Completed'), 'the healthy export completes', isolatedMs);
    expect((await verifyExport(stack, healthy)).findings).toEqual([]);
    for (const id of unavailable) await stack.call('DELETE', `/batch_exports/${id}/`);
    const active = async () => {
      const { rows } = await stack.pool.query<{ runs: number }>(
        `select count(*) as runs from exportd.batch_export_runs
         where batch_export_id = any($1) and status in ('Starting', 'Running')`,
        [unavailable],
      );
      return rows[0]?.runs;
    };
    await waitFor(async () => (await active()) === 0, 'the runs of the deleted exports end', isolatedMs);
  });

  it('with a huge backfill, the others complete', async () => {
    const huge = await stack.createExport();
    await backfill(huge, 200);
    await waitFor(async () => (await statuses(huge)).includes('Completed'), 'the huge backfill is under way');
    const good = await stack.createExport();
    await backfill(good, hours);
    await waitFor(() => areAll(good, 'Completed'), 'the export completes');
    const { body } = await stack.call('GET', `/batch_exports/${huge}/backfills/`);
    expect(body.results).toMatchObject([{ finished_at: null }]);
    await stack.call('DELETE', `/batch_exports/${huge}/`);
  });
});

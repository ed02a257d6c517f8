import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { startStack, type Stack } from './stack.ts';

const runs = 10_000;
/** After so many runs all caches of a worker are full: of workflows, statements and log lines. */
const warmUpRuns = 2_000;
/** In one such block V8 collects all garbage at least once. */
const block = 1_000;

let stack: Stack;
let worker: string;

beforeAll(async () => {
  const folder = fromSetUp('EXPORTD_TEST_FOLDER');
  const ports = await assignPorts(join(folder, `${randomUUID()}.ports.json`), ['worker']);
  worker = `http://127.0.0.1:${String(ports.worker)}`;
  stack = await startStack('soak', { EXPORTD_WORKER_HTTP_PORT: String(ports.worker) });
  await stack.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, created_at, inserted_at)
     select $1, gen_random_uuid(), '$pageview', 'person-' || n % 100, gen_random_uuid(), '{"n": 1}', moment, moment, moment
     from generate_series(0, $3::int * 2 - 1) n
     cross join lateral (select $2::timestamptz + n * interval '30 minutes' as moment) m`,
    [stack.projectId, hourAgo(runs + 1), runs],
  );
});
afterAll(() => stack.stop());

const completedRuns = async (): Promise<number> => {
  const { rows } = await stack.pool.query<{ count: number }>(
    `select count(*)::int as count from exportd.batch_export_runs where status = 'Completed'`,
  );
  return rows[0]?.count ?? 0;
};

/** The worker's memory in use, garbage included, in bytes: of its heap, and of buffers. */
async function usedBytes(): Promise<number> {
  const metrics = await (await fetch(`${worker}/metrics`)).text();
  const of = (name: string): number => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(metrics)?.[1]);
  return of('nodejs_heap_size_used_bytes') + of('nodejs_external_memory_bytes');
}

it(`a worker needs no more memory after ${String(runs)} runs than after ${String(warmUpRuns)}`, async () => {
  const id = await stack.createExport();
  const { status } = await stack.call('POST', `/batch_exports/${id}/backfill/`, {
    start_at: hourAgo(runs + 1).toISOString(),
    end_at: hourAgo(1).toISOString(),
  });
  expect(status).toBe(200);
  const leastBytes: number[] = [];
  for (let end = block; end <= runs; end += block) {
    let least = Infinity;
    await waitFor(
      async () => {
        least = Math.min(least, await usedBytes());
        return (await completedRuns()) >= end;
      },
      `${String(end)} runs complete`,
      1_200_000,
    );
    leastBytes.push(least);
  }
  const warm = leastBytes.slice(warmUpRuns / block);
  process.stdout.write(
    `The least memory in each ${String(block)} runs, in MB: ${leastBytes.map((bytes) => (bytes / 1e6).toFixed(1)).join(', ')}\n`,
  );
  expect(warm.at(-1)).toBeLessThan(1.1 * (warm[0] ?? 0));
}, 7_200_000);

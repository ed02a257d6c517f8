import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { batchExportDecider } from '../../../src/domain/batch_export.ts';
import { createPool } from '../../../src/journal/database.ts';
import { openJournal } from '../../../src/projections/registry.ts';

/** A thread that appends to an export every few milliseconds until it gets a message; then it posts how long each append took. */

const { databaseUrl, exportId, name } = workerData as { databaseUrl: string; exportId: string; name: string };
const pauseMs = 5;
const pool = createPool(databaseUrl, { max: 1 });
const journal = openJournal(pool);
const over = new AbortController();
parentPort?.once('message', () => over.abort());

const append = (count: number): Promise<unknown> =>
  journal.transaction(async ({ lock }) => {
    const stream = await lock(batchExportDecider, exportId);
    return stream.append(`probe:${name}:${count}`, [
      { type: 'BatchExportLastPausedAtSet', data: { last_paused_at: null } },
    ]);
  });

// Connects and compiles.
await append(0);
const times: number[] = [];
while (!over.signal.aborted) {
  const startedAt = performance.now();
  await append(times.length + 1);
  times.push(performance.now() - startedAt);
  await delay(pauseMs);
}
await pool.end();
parentPort?.postMessage(times);

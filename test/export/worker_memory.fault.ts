import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { insertEvents, readObject } from '../e2e/rows.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { casesOf } from '../setup/effort.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';

/** What operations.md recommends to start with: 1 core and 512 MB. */
const recommendedMiB = 512;
const recommendedCore = { EXPORTD_ENCODER_THREADS: '1', EXPORTD_MEMORY_BUDGET: '64MiB' };
const wideBytes = 240_000_000;

describe('the recommended worker', () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack('worker-memory', recommendedCore, { v8Options: [] });
    await insertEvents(stack.pool, stack.projectId, hourAgo(3), 1_000);
    await stack.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select $1, gen_random_uuid(), 'wide', 'person', jsonb_build_object('wide', repeat('a', $3)), moment, moment
       from (select $2::timestamptz + interval '20 minutes' as moment) as at`,
      [stack.projectId, hourAgo(3), wideBytes],
    );
  });
  afterAll(() => stack.stop());

  const pid = (): number => stack.workers[0]?.pid ?? 0;
  /** The most memory that the worker has used so far. */
  const peakMiB = async (): Promise<number> => {
    const status = await readFile(`/proc/${pid()}/status`, 'utf8');
    return Math.round(Number(/^VmHWM:\s*(\d+) kB/m.exec(status)?.[1]) / 1_024);
  };

  // It is rejected before it is encoded. Parquet needs the most memory for the other rows.
  it.each(casesOf(['Parquet'], ['JSONLines', 'CSV', 'Parquet']))(
    'survives a row of 240 MB, and rejects it (%s)',
    async (file_format) => {
      const config = { file_format, compression: 'zstd', on_bad_row: 'reject' };
      const id = await stack.createExport({}, config);
      await stack.call('POST', `/batch_exports/${id}/backfill/`, {
        start_at: hourAgo(3).toISOString(),
        end_at: hourAgo(2).toISOString(),
      });
      const { id: run_id } = await waitFor(async () => (await stack.runs(id))[0], 'the backfill has a run');
      const run = await stack.waitForRun(id, run_id, 'Completed');
      expect(run.records_completed).toBe(1_000);
      const manifest = JSON.parse((await readObject(stack.bucket, run.manifest_key ?? '')).toString()) as {
        rejected: number;
      };
      expect(manifest.rejected).toBe(1);
      const peak = await peakMiB();
      process.stdout.write(`Peak of the worker after ${file_format}: ${peak} MiB\n`);
      expect(peak).toBeLessThan(recommendedMiB);
    },
  );
});

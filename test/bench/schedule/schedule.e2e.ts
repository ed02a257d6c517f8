import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import type { ScheduleBenchDocument } from '../../../src/bench/schedule/document.ts';
import { exportd } from '../../cli/command_line.ts';
import { createBucket } from '../../setup/bucket.ts';
import { createTestDatabase } from '../../setup/database.ts';
import { fromSetUp } from '../../setup/environment.ts';

const folder = () => join(fromSetUp('EXPORTD_TEST_FOLDER'), 'schedule');

/** Runs the bench on the servers of the tests. */
const runBench = (...args: string[]) =>
  exportd(
    {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: fromSetUp('EXPORTD_TEST_DATABASE_URL'),
      TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
      S3_ENDPOINT: fromSetUp('EXPORTD_TEST_S3_ENDPOINT'),
      AWS_ACCESS_KEY_ID: fromSetUp('EXPORTD_TEST_S3_ACCESS_KEY_ID'),
      AWS_SECRET_ACCESS_KEY: fromSetUp('EXPORTD_TEST_S3_SECRET_ACCESS_KEY'),
      EXPORTD_SETTLE_MS: '0',
    },
    ...['bench', 'schedule', '--use-environment', '--folder', folder(), ...args],
  );

describe('exportd bench schedule', () => {
  it('prints one document whose figures fit together, and leaves nothing behind', async () => {
    // Not a tick: the next would be up to a minute away.
    const sizes = ['--exports', '0', '--backfill', '5', '--bare', '5'];
    const { code, stdout, stderr } = await runBench('--json', ...sizes);
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    const found = JSON.parse(stdout) as ScheduleBenchDocument;
    const { bare, backfill, largest_history } = found;
    expect(found).toMatchObject({ exports: 0, settle_seconds: 0, creation: null, ticks: [] });
    expect(bare.map(({ at_once }) => at_once)).toEqual([20, 3, 20, 3]);
    expect(backfill).toMatchObject({ intervals: 5, at_once: 3, run: { sampled: 5 } });
    expect(backfill.runs_per_second * backfill.seconds).toBeCloseTo(5, 1);
    expect(backfill.use.worker.cpu_seconds).toBeGreaterThan(0);
    // Servers that the bench did not start have no figures.
    expect(backfill.use.temporal).toEqual({ cpu_seconds: null, memory_bytes: null });
    expect(largest_history.workflow_id).toMatch(/^batch-export-/);
    expect(largest_history.events).toBeGreaterThan(10);
    expect(largest_history.events).toBeLessThan(5_000);

    const database = await createTestDatabase();
    const { client } = await createBucket();
    const { Buckets } = await client.send(new ListBucketsCommand({}));
    await database.drop();
    expect(Buckets?.filter(({ Name }) => Name?.startsWith('exportd-bench'))).toEqual([]);
    expect(existsSync(join(folder(), 'exportd-bench'))).toBe(false);
  });
});

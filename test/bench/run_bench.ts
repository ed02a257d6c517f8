import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import { exportdProcess, type CommandResult } from '../cli/command_line.ts';
import { createBucket } from '../setup/bucket.ts';
import { createTestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';

/** Runs a benchmark on the test servers. @throws Error when it fails. */
export async function runBench(folder: string, ...args: readonly string[]): Promise<CommandResult> {
  const result = await exportdProcess(
    {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: fromSetUp('EXPORTD_TEST_DATABASE_URL'),
      TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
      S3_ENDPOINT: fromSetUp('EXPORTD_TEST_S3_ENDPOINT'),
      AWS_ACCESS_KEY_ID: fromSetUp('EXPORTD_TEST_S3_ACCESS_KEY_ID'),
      AWS_SECRET_ACCESS_KEY: fromSetUp('EXPORTD_TEST_S3_SECRET_ACCESS_KEY'),
      EXPORTD_SETTLE_DELAY: '0s',
      EXPORTD_WORKFLOW_BUNDLE: fromSetUp('EXPORTD_WORKFLOW_BUNDLE'),
    },
    ...['bench', ...args, '--use-environment', '--folder', folder],
  );
  if (result.code !== 0) throw new Error(`The benchmark exited with code ${result.code}: ${result.stderr}`);
  return result;
}

/** Checks that a benchmark has deleted its database, bucket and folder. */
export async function expectNothingLeft({ stderr }: CommandResult, folder: string): Promise<void> {
  const [, scratchDatabase, scratchBucket] =
    /The scratch database is (\S+), the scratch bucket (\S+)/.exec(stderr) ?? [];
  expect(scratchDatabase).toMatch(/^exportd_bench_/);
  const database = await createTestDatabase();
  const { client } = await createBucket();
  const { rows } = await database.pool.query<{ datname: string }>(`select datname::text from pg_database`);
  const { Buckets = [] } = await client.send(new ListBucketsCommand({}));
  await database.drop();
  expect(rows.map(({ datname }) => datname)).not.toContain(scratchDatabase);
  expect(Buckets.map(({ Name }) => Name)).not.toContain(scratchBucket);
  expect(existsSync(join(folder, 'exportd-bench'))).toBe(false);
}

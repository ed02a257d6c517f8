import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import type { CommandResult } from '../cli/command_line.ts';
import { createBucket } from '../setup/bucket.ts';
import { createTestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import type { QueryBenchResult } from './query/query_bench.ts';

/** A folder for a benchmark's data, of its own: several test files may run at once. */
export const benchFolder = (): string => join(fromSetUp('EXPORTD_TEST_FOLDER'), `bench-${randomUUID()}`);

const program = join(import.meta.dirname, 'main.ts');

/** Runs a benchmark on the test servers. @throws Error when it fails. */
export async function runBench(folder: string, ...args: readonly string[]): Promise<CommandResult> {
  const env = {
    PATH: process.env.PATH ?? '',
    NODE_COMPILE_CACHE: fromSetUp('NODE_COMPILE_CACHE'),
    DATABASE_URL: fromSetUp('EXPORTD_TEST_DATABASE_URL'),
    TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
    S3_ENDPOINT: fromSetUp('EXPORTD_TEST_S3_ENDPOINT'),
    AWS_ACCESS_KEY_ID: fromSetUp('EXPORTD_TEST_S3_ACCESS_KEY_ID'),
    AWS_SECRET_ACCESS_KEY: fromSetUp('EXPORTD_TEST_S3_SECRET_ACCESS_KEY'),
    EXPORTD_SETTLE_DELAY: '0s',
    EXPORTD_WORKFLOW_BUNDLE: fromSetUp('EXPORTD_WORKFLOW_BUNDLE'),
  };
  const all = [program, ...args, '--use-environment', '--folder', folder];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, all, { env }, (error, stdout, stderr) => {
      if (error) reject(new Error(`The benchmark failed: ${stderr}`, { cause: error }));
      else resolve({ code: 0, stdout, stderr });
    });
  });
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

/** Runs `bench query` with few events. Expects equal results of exportd and hand-written SQL, and that its data is deleted. */
export async function runQueryBench(): Promise<QueryBenchResult> {
  const folder = benchFolder();
  const sizes = ['--events', '3000', '--days', '40', '--repeat', '1'];
  const command = await runBench(folder, 'query', '--json', ...sizes);
  const found = JSON.parse(command.stdout) as QueryBenchResult;
  expect(found).toMatchObject({ events: 3_000, days: 40, repeat: 1 });
  expect(found.persons).toBeGreaterThan(100);
  for (const insight of found.insights) {
    expect(insight).toMatchObject({ agrees: true, difference: null });
    expect('ratio' in insight && insight.ratio).toBeGreaterThan(0);
  }
  await expectNothingLeft(command, folder);
  return found;
}

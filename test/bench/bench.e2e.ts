import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import type {
  BenchDocument,
  ExportResult,
  PipelineResult,
  Skipped,
  Throughput,
} from '../../src/bench/document.ts';
import { exportd, type CommandResult } from '../cli/command_line.ts';
import { createBucket } from '../setup/bucket.ts';
import { createTestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';

const events = 3_000;
const folder = () => fromSetUp('EXPORTD_TEST_FOLDER');

async function runBench(...args: string[]): Promise<CommandResult> {
  const result = await exportd(
    {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: fromSetUp('EXPORTD_TEST_DATABASE_URL'),
      TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
      S3_ENDPOINT: fromSetUp('EXPORTD_TEST_S3_ENDPOINT'),
      AWS_ACCESS_KEY_ID: fromSetUp('EXPORTD_TEST_S3_ACCESS_KEY_ID'),
      AWS_SECRET_ACCESS_KEY: fromSetUp('EXPORTD_TEST_S3_SECRET_ACCESS_KEY'),
    },
    ...['bench', '--use-environment', '--folder', folder(), '--events', String(events), ...args],
  );
  if (result.code !== 0) throw new Error(`The bench ended with code ${result.code}: ${result.stderr}`);
  return result;
}

async function expectNothingLeft(): Promise<void> {
  const database = await createTestDatabase();
  const { client } = await createBucket();
  const { rowCount } = await database.pool.query(
    `select from pg_database where datname like 'exportd\\_bench\\_%'`,
  );
  const { Buckets } = await client.send(new ListBucketsCommand({}));
  await database.drop();
  expect(rowCount).toBe(0);
  expect(Buckets?.filter(({ Name }) => Name?.startsWith('exportd-bench'))).toEqual([]);
  expect(existsSync(join(folder(), 'exportd-bench'))).toBe(false);
}

const isMeasured = <Result extends object>(result: Result | Skipped): result is Result =>
  !('skipped' in result);

function measured<Result extends object>(result: Result | Skipped | undefined): Result {
  if (result === undefined || !isMeasured(result)) throw new Error(`Not measured: ${JSON.stringify(result)}`);
  return result;
}

function expectFigures({ seconds, rows_per_second, cpu_seconds }: Throughput): void {
  expect(seconds.all).toEqual([seconds.median]);
  expect(seconds.minimum).toBe(seconds.median);
  expect(cpu_seconds.median).toBeGreaterThan(0);
  expect((rows_per_second * seconds.median) / events).toBeCloseTo(1, 2);
}

/** Ratios are of exact times, which are printed to the millisecond. */
function expectRatio(ratio: number | null, one: Throughput, other: Throughput): void {
  expect(((ratio ?? 0) * other.seconds.median) / one.seconds.median).toBeCloseTo(1, 1);
}

describe('exportd bench', () => {
  it('prints one document whose figures fit together, and leaves nothing behind', async () => {
    const { stdout } = await runBench('--json', '--formats', 'JSONLines+gzip,JSONLines+lzma');
    const found = JSON.parse(stdout) as BenchDocument;
    expect(found).toMatchObject({ events, repeat: 1, warm: false, machine: { node: process.version } });
    expect(found.copy_bytes / events).toBeGreaterThan(400);
    expect(found.copy_bytes / events).toBeLessThan(500);

    const { floor } = found;
    const { pipeline } = found;
    const [gzip, lzma] = found.exports;
    const result = measured<ExportResult & { format: string }>(gzip);
    expect(result).toMatchObject({ format: 'JSONLines+gzip', rows: events });
    expect(lzma).toMatchObject({
      format: 'JSONLines+lzma',
      skipped: expect.stringContaining('not supported'),
    });

    expectFigures(floor);
    expectFigures(result);
    expect(result.seconds_from_command.median).toBeGreaterThanOrEqual(result.seconds.median);
    expect(result.peak_memory_bytes).toBeGreaterThanOrEqual(result.idle_memory_bytes ?? Infinity);
    expectRatio(result.ratio_to_floor, result, floor);
    if (isMeasured<PipelineResult>(pipeline)) {
      expectFigures(pipeline);
      expectRatio(result.times_faster_than_pipeline, pipeline, result);
      expect(result.size_to_pipeline).toBeCloseTo(result.bytes / pipeline.bytes, 2);
    } else {
      // A machine with nothing but Node.
      expect(pipeline.skipped).toMatch(/^Not on PATH: /);
      expect(result).toMatchObject({ times_faster_than_pipeline: null, size_to_pipeline: null });
    }
    await expectNothingLeft();
  });

  it('measures warm workers again and again, and keeps a profile of each', async () => {
    const profiles = join(folder(), 'profiles');
    const { stdout, stderr } = await runBench(
      ...['--formats', 'JSONLines', '--warm', '--repeat', '2', '--profile', profiles],
    );
    expect(stdout).toMatch(/^what +seconds +least .*\nfloor .*\n(psql|shell) .*\nexportd JSONLines .*\n$/);
    expect(stderr).toMatch(/exportd JSONLines \(2 of 2\): [\d.]+ s/);
    for (const repeat of ['1', '2'])
      expect(readdirSync(join(profiles, `JSONLines-${repeat}`))).toContainEqual(
        expect.stringMatching(/\.cpuprofile$/),
      );
    await expectNothingLeft();
  });
});

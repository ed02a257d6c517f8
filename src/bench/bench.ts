import { join } from 'node:path';
import type { Report } from '../local_stack/report.ts';
import { createBenchAccount } from './bench_account.ts';
import { resultsOf } from './compute_results.ts';
import { discardCopy, exportStatements } from './export_statements.ts';
import { defaultFormats } from './formats.ts';
import { insertEvents } from './insert_events.ts';
import { measureOnScratch, type ScratchOptions } from './measure_on_scratch.ts';
import { measurePrograms } from './measure_programs.ts';
import type { BenchResult } from './result.ts';
import type { VerifyDepth } from './verify_run.ts';

export interface BenchOptions extends ScratchOptions {
  readonly events: number;
  /** Those of `defaultFormats` without it. */
  readonly formats?: readonly string[];
  /** Whether exports are compared with the shell pipeline. */
  readonly pipeline: boolean;
  /** Whether exports are compared with DuckDB. */
  readonly duckdb: boolean;
  readonly repeat: number;
  /** Whether each worker exports the interval once before the measurement. Otherwise the results include its start-up. */
  readonly warm?: boolean;
  /** How each format is verified after its first measurement. */
  readonly verify: VerifyDepth;
  /** Folder for the CPU profiles of the workers; none are written without it. */
  readonly profile?: string;
}

/** An arbitrary hour in the past. */
const interval = { start: '2026-01-01T00:00:00.000Z', end: '2026-01-01T01:00:00.000Z' };

/**
 * Creates events in a scratch database and measures how long it takes to read them, to export them with a shell pipeline
 * and with DuckDB, and to export them with exportd in each format. Deletes everything that it created.
 * @throws LaunchError when a server does not start, a run does not complete, or its objects differ from the source.
 * @throws the reason of an aborted signal
 */
export async function runBench(
  options: BenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<BenchResult> {
  return measureOnScratch(options, report, async ({ stack, pool }) => {
    const account = await createBenchAccount(pool);
    const { teamId } = account;
    const {
      events,
      formats = defaultFormats,
      pipeline,
      duckdb,
      repeat,
      warm = false,
      verify,
      profile,
    } = options;
    await insertEvents(
      stack.databaseUrl,
      { teamId, start: new Date(interval.start), count: events },
      report,
      signal,
    );
    const statements = await exportStatements(stack.databaseUrl, teamId, interval);
    // Not timed. It fills the caches, for the same conditions in every measurement.
    const copy_bytes = await discardCopy(stack.databaseUrl, statements.copyBinary);
    report(`The events have ${(copy_bytes / 1e6).toFixed(1)} MB as binary COPY`);
    const measurements = await measurePrograms({
      ...{ events, interval, formats, pipeline, duckdb, repeat, warm, verify },
      ...{ stack, pool, account, statements, report, signal },
      profileFolder: (format, number) => profile && join(profile, `${format}-${String(number)}`),
    });
    const results = resultsOf(measurements, formats, { events, copy_bytes });
    return { events, copy_bytes, repeat, warm, ...results };
  });
}

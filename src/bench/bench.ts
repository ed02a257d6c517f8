import { join } from 'node:path';
import { LaunchError } from '../local_stack/launch_error.ts';
import type { Report } from '../local_stack/report.ts';
import type { Pool } from '../journal/database.ts';
import { createBenchAccount, type BenchAccount } from './bench_account.ts';
import type { BenchResult } from './result.ts';
import { discardCopy, exportStatements, type ExportStatements } from './export_statements.ts';
import type { Measurement } from './statistics.ts';
import { measureFloor } from './floor.ts';
import { defaultFormats, unsupportedReason } from './formats.ts';
import { insertEvents } from './insert_events.ts';
import { measureRun, type MeasuredRun } from './measured_run.ts';
import { measurePipeline, pipelineObstacle } from './pipeline.ts';
import { resultsOf, type Measurements } from './compute_results.ts';
import { measureOnScratch, type ScratchOptions } from './measure_on_scratch.ts';
import type { ScratchStack } from './scratch_stack.ts';

export interface BenchOptions extends ScratchOptions {
  readonly events: number;
  /** Those of `defaultFormats` without it. */
  readonly formats?: readonly string[];
  readonly repeat: number;
  /** Whether each worker exports the interval once before the measurement. Otherwise the results include its start-up. */
  readonly warm?: boolean;
  /** Folder for the CPU profiles of the workers; none are written without it. */
  readonly profile?: string;
}

/** An arbitrary hour in the past. */
const interval = { start: '2026-01-01T00:00:00.000Z', end: '2026-01-01T01:00:00.000Z' };

/** Dependencies of the measurements. */
interface Bench {
  readonly options: BenchOptions;
  readonly formats: readonly string[];
  readonly stack: ScratchStack;
  readonly pool: Pool;
  readonly account: BenchAccount;
  readonly statements: ExportStatements;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Creates events in a scratch database and measures how long it takes to read them, to export them with a shell pipeline,
 * and to export them with exportd in each format. Deletes everything that it created.
 * @throws LaunchError when a server does not start or a run does not complete. @throws the reason of an aborted signal
 */
export async function runBench(
  options: BenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<BenchResult> {
  return measureOnScratch(options, report, async ({ stack, pool }) => {
    const account = await createBenchAccount(pool);
    const { teamId } = account;
    const { events, formats = defaultFormats, repeat } = options;
    await insertEvents(
      stack.databaseUrl,
      { teamId, start: new Date(interval.start), count: events },
      report,
      signal,
    );
    const statements = await exportStatements(stack.databaseUrl, teamId, interval);
    // Not timed. It fills the caches, for the same conditions in every measurement.
    const copy_bytes = await discardCopy(stack.databaseUrl, statements.copyBinary);
    report(`The events have ${megabytes(copy_bytes)} as binary COPY`);
    const measurements = await measure({
      options,
      formats,
      stack,
      pool,
      account,
      statements,
      report,
      signal,
    });
    return {
      events,
      copy_bytes,
      repeat,
      warm: options.warm ?? false,
      ...resultsOf(measurements, formats, { events, copy_bytes }),
    };
  });
}

/** Measures everything once per repeat: results that are compared were measured at about the same time. */
async function measure(bench: Bench): Promise<Measurements> {
  const { options, formats, stack, statements, report, signal } = bench;
  const unsupportedFormats = new Map<string, string>();
  for (const format of formats) {
    const reason = unsupportedReason(format, stack);
    if (reason !== undefined) unsupportedFormats.set(format, reason);
  }
  const runs = new Map<string, MeasuredRun[]>(
    formats.filter((format) => !unsupportedFormats.has(format)).map((format) => [format, []]),
  );
  const measurements: Measurements = {
    floor: [],
    pipeline: [],
    runs,
    unsupportedFormats,
    pipelineObstacle: pipelineObstacle(),
  };
  for (const [format, reason] of unsupportedFormats) report(`Skipping ${format}: ${reason}`);
  if (measurements.pipelineObstacle !== undefined)
    report(`Skipping the shell pipeline. ${measurements.pipelineObstacle}`);

  for (let repeat = 1; repeat <= options.repeat; repeat += 1) {
    const progress = options.repeat === 1 ? '' : ` (${String(repeat)} of ${String(options.repeat)})`;
    const floor = await measureFloor(stack.databaseUrl, statements.copyBinary, signal);
    report(`Floor${progress}: ${describe(floor)}`);
    measurements.floor.push(floor);
    if (measurements.pipelineObstacle === undefined) {
      const pipeline = await measurePipeline(stack, statements.copyJson, signal);
      report(`Shell pipeline${progress}: ${describe(pipeline)}, ${megabytes(pipeline.bytes)}`);
      measurements.pipeline.push(pipeline);
      await stack.emptyBucket();
    }
    for (const [format, ofFormat] of runs) {
      const run = await measureFormat(bench, format, repeat);
      report(`exportd ${format}${progress}: ${describe(run)}, ${megabytes(run.bytes)}`);
      ofFormat.push(run);
      await stack.emptyBucket();
    }
  }
  return measurements;
}

async function measureFormat(bench: Bench, format: string, repeat: number): Promise<MeasuredRun> {
  const { options, stack, pool, account, signal } = bench;
  const profileFolder = options.profile && join(options.profile, `${format}-${String(repeat)}`);
  const warm = options.warm ?? false;
  const run = await measureRun(stack, pool, { format, account, interval, warm, profileFolder }, signal);
  if (run.rows !== options.events)
    throw new LaunchError(
      `The manifest of ${format} has ${String(run.rows)} rows instead of ${String(options.events)}.`,
    );
  return run;
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const describe = ({ seconds, cpu_seconds }: Measurement): string =>
  `${seconds.toFixed(2)} s, ${cpu_seconds.toFixed(2)} s CPU`;

import { join } from 'node:path';
import { LaunchError } from '../local_stack/launch_error.ts';
import type { Report } from '../local_stack/report.ts';
import { createPool, type Pool } from '../journal/database.ts';
import { createBenchAccount, type BenchAccount } from './account.ts';
import type { BenchDocument } from './document.ts';
import { discardCopy, exportedRows, type ExportedRows } from './exported_rows.ts';
import { rounded, type Measurement } from './figures.ts';
import { measureFloor } from './floor.ts';
import { refusalOf } from './formats.ts';
import { describeMachine } from './machine.ts';
import { makeEvents } from './make_events.ts';
import { measureRun, type MeasuredRun } from './measured_run.ts';
import { measurePipeline, pipelineObstacle } from './pipeline.ts';
import { resultsOf, type Measurements } from './results.ts';
import { createScratchStack, type ScratchStack } from './scratch_stack.ts';

export interface BenchOptions {
  readonly events: number;
  /** See `defaultFormats`. */
  readonly formats: readonly string[];
  readonly repeat: number;
  /** Whether each worker exports the interval once before it is measured; else its start-up is part of the figures. */
  readonly warm: boolean;
  /** Folder of the scratch servers' data; removed afterwards. */
  readonly folder: string;
  /** Whether servers that the environment names are used instead of starting some. */
  readonly useEnvironment: boolean;
  /** Where the CPU profiles of the workers are kept; none are made without it. */
  readonly profileFolder?: string | undefined;
}

/** Any full hour of the past. */
const interval = { start: '2026-01-01T00:00:00.000Z', end: '2026-01-01T01:00:00.000Z' };

/** What the measurements work with. */
interface Bench {
  readonly options: BenchOptions;
  readonly stack: ScratchStack;
  readonly pool: Pool;
  readonly account: BenchAccount;
  readonly statements: ExportedRows;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Makes events in a scratch database and measures how long it takes to read them, to export them by a shell pipeline,
 * and to export them by exportd in each format. Removes all that it made.
 * @throws LaunchError when a server does not start or a run does not complete; the signal's reason when it is aborted
 */
export async function runBench(
  options: BenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<BenchDocument> {
  const began = new Date();
  const stack = await createScratchStack(options.folder, options, report);
  const pool = createPool(stack.databaseUrl, { max: 2 });
  try {
    const account = await createBenchAccount(pool);
    const { teamId } = account;
    const { events, formats, repeat } = options;
    await makeEvents(
      stack.databaseUrl,
      { teamId, start: new Date(interval.start), count: events },
      report,
      signal,
    );
    const statements = await exportedRows(stack.databaseUrl, teamId, interval);
    // Not timed: after it the system's memory holds the same for every measurement.
    const copy_bytes = await discardCopy(stack.databaseUrl, statements.copyBinary);
    report(`They are ${megabytes(copy_bytes)} as binary COPY`);
    const measurements = await measure({ options, stack, pool, account, statements, report, signal });
    return {
      started_at: began.toISOString(),
      seconds: rounded((Date.now() - began.getTime()) / 1_000),
      machine: await describeMachine(pool),
      events,
      copy_bytes,
      repeat,
      warm: options.warm,
      ...resultsOf(measurements, formats, { events, copy_bytes }),
    };
  } finally {
    await pool.end();
    report('Removing the scratch data');
    await stack.remove();
  }
}

/** Measures everything once per repeat, so that what is compared was measured at about the same time. */
async function measure(bench: Bench): Promise<Measurements> {
  const { options, stack, statements, report, signal } = bench;
  const refusals = new Map<string, string>();
  for (const format of options.formats) {
    const refusal = refusalOf(format, stack);
    if (refusal !== undefined) refusals.set(format, refusal);
  }
  const runs = new Map<string, MeasuredRun[]>(
    options.formats.filter((format) => !refusals.has(format)).map((format) => [format, []]),
  );
  const measurements: Measurements = {
    floor: [],
    pipeline: [],
    runs,
    refusals,
    pipelineObstacle: pipelineObstacle(),
  };
  for (const [format, refusal] of refusals) report(`${format} is left out: ${refusal}`);
  if (measurements.pipelineObstacle !== undefined)
    report(`The shell pipeline cannot be measured. ${measurements.pipelineObstacle}`);

  for (let repeat = 1; repeat <= options.repeat; repeat += 1) {
    const place = options.repeat === 1 ? '' : ` (${String(repeat)} of ${String(options.repeat)})`;
    const floor = await measureFloor(stack.databaseUrl, statements.copyBinary, signal);
    report(`Floor${place}: ${describe(floor)}`);
    measurements.floor.push(floor);
    if (measurements.pipelineObstacle === undefined) {
      const pipeline = await measurePipeline(stack, statements.copyJson, signal);
      report(`Shell pipeline${place}: ${describe(pipeline)}, ${megabytes(pipeline.bytes)}`);
      measurements.pipeline.push(pipeline);
      await stack.emptyBucket();
    }
    for (const [format, ofFormat] of runs) {
      const run = await measureFormat(bench, format, repeat);
      report(`exportd ${format}${place}: ${describe(run)}, ${megabytes(run.bytes)}`);
      ofFormat.push(run);
      await stack.emptyBucket();
    }
  }
  return measurements;
}

async function measureFormat(bench: Bench, format: string, repeat: number): Promise<MeasuredRun> {
  const { options, stack, pool, account, signal } = bench;
  const profileFolder = options.profileFolder && join(options.profileFolder, `${format}-${String(repeat)}`);
  const { warm } = options;
  const run = await measureRun(stack, pool, { format, account, interval, warm, profileFolder }, signal);
  if (run.rows !== options.events)
    throw new LaunchError(
      `The manifest of ${format} says ${String(run.rows)} rows, and there are ${String(options.events)} events.`,
    );
  return run;
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const describe = ({ seconds, cpu_seconds }: Measurement): string =>
  `${seconds.toFixed(2)} s, ${cpu_seconds.toFixed(2)} s of CPU`;

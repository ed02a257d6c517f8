import type { Pool } from '../journal/database.ts';
import { LaunchError } from '../local_stack/launch_error.ts';
import type { Report } from '../local_stack/report.ts';
import type { BenchAccount } from './bench_account.ts';
import type { Measurements } from './compute_results.ts';
import { prepareDuckDb } from './duckdb.ts';
import type { ExportStatements } from './export_statements.ts';
import { measureFloor } from './floor.ts';
import { unsupportedReason } from './formats.ts';
import type { MeasuredRun } from './measured_export.ts';
import { measureRun } from './measured_run.ts';
import { measurePipeline, pipelineObstacle } from './pipeline.ts';
import type { ScratchStack } from './scratch_stack.ts';
import type { MeasuredProgram, Measurement } from './statistics.ts';
import type { VerifyDepth } from './verify_run.ts';

/** What to measure, and on what. */
export interface Programs {
  readonly events: number;
  readonly interval: { readonly start: string; readonly end: string };
  readonly formats: readonly string[];
  readonly pipeline: boolean;
  readonly duckdb: boolean;
  readonly repeat: number;
  readonly warm: boolean;
  readonly verify: VerifyDepth;
  /** Returns the folder for the CPU profiles of a worker. */
  readonly profileFolder: (format: string, repeat: number) => string | undefined;
  readonly stack: ScratchStack;
  readonly pool: Pool;
  readonly account: BenchAccount;
  readonly statements: ExportStatements;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Measures every program once per repeat: results that are compared were measured at about the same time. */
export async function measurePrograms(programs: Programs): Promise<Measurements> {
  const { stack, statements, formats, repeat, report, signal } = programs;
  const skipped = new Map<string, string>();
  const skip = (name: string, reason: string | undefined): void => {
    if (reason === undefined) return;
    skipped.set(name, reason);
    report(`Skipping ${name}. ${reason}`);
  };
  const notRequested = 'Not requested.';
  skip('pipeline', programs.pipeline ? pipelineObstacle() : notRequested);
  const prepared = programs.duckdb ? await prepareDuckDb(stack, signal) : notRequested;
  skip('duckdb', typeof prepared === 'string' ? prepared : undefined);
  for (const format of formats) skip(format, unsupportedReason(format, stack));

  const runs = new Map<string, MeasuredRun[]>(
    formats.filter((format) => !skipped.has(format)).map((format) => [format, []]),
  );
  const measurements: Measurements = { floor: [], pipeline: [], duckdb: [], runs, skipped };
  for (let number = 1; number <= repeat; number += 1) {
    const progress = repeat === 1 ? '' : ` (${String(number)} of ${String(repeat)})`;
    const measured = <Found extends Measurement>(name: string, list: Found[], found: Found): void => {
      list.push(found);
      report(`${name}${progress}: ${describe(found)}`);
    };
    measured(
      'Floor',
      measurements.floor,
      await measureFloor(stack.databaseUrl, statements.copyBinary, signal),
    );
    if (!skipped.has('pipeline')) {
      measured(
        'Shell pipeline',
        measurements.pipeline,
        await measurePipeline(stack, statements.copyJson, signal),
      );
      await stack.emptyBucket();
    }
    if (typeof prepared !== 'string')
      measured('DuckDB', measurements.duckdb, await prepared.measure(statements.rows));
    for (const [format, ofFormat] of runs) {
      measured(`exportd ${format}`, ofFormat, await measureFormat(programs, format, number));
      await stack.emptyBucket();
    }
  }
  return measurements;
}

async function measureFormat(programs: Programs, format: string, repeat: number): Promise<MeasuredRun> {
  const { stack, pool, account, interval, warm, profileFolder, events, signal } = programs;
  // Each repeat exports the same rows, and verifying takes longer than exporting.
  const verify = repeat === 1 ? programs.verify : undefined;
  const request = { format, account, interval, warm, verify, profileFolder: profileFolder(format, repeat) };
  const run = await measureRun(stack, pool, request, signal);
  if (run.rows !== events)
    throw new LaunchError(
      `The manifest of ${format} has ${String(run.rows)} rows instead of ${String(events)}.`,
    );
  return run;
}

const describe = ({ seconds, cpu_seconds, ...rest }: Measurement & Partial<MeasuredProgram>): string => {
  const size = rest.bytes === undefined ? '' : `, ${(rest.bytes / 1e6).toFixed(1)} MB`;
  const requests = rest.s3_requests ? `, ${String(rest.s3_requests)} S3 requests` : '';
  return `${seconds.toFixed(2)} s, ${cpu_seconds.toFixed(2)} s CPU${size}${requests}`;
};

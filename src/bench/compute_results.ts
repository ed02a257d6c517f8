import type { MeasuredDuckDb } from './duckdb.ts';
import { floorClient } from './floor.ts';
import type { MeasuredRun } from './measured_export.ts';
import type { BenchResult, Compared, DuckDbResult, ExportResult, Skipped } from './result.ts';
import {
  medianOf,
  pairedRatios,
  rounded,
  statisticsOf,
  throughputOf,
  type MeasuredProgram,
  type Measurement,
} from './statistics.ts';

/** The measurements of all repeats, in order. */
export interface Measurements {
  readonly floor: Measurement[];
  readonly pipeline: MeasuredProgram[];
  readonly duckdb: MeasuredDuckDb[];
  /** By format, without skipped ones. */
  readonly runs: ReadonlyMap<string, MeasuredRun[]>;
  /** Why a program was skipped: `pipeline`, `duckdb` or a format. */
  readonly skipped: ReadonlyMap<string, string>;
}

/** The exported events. */
interface Events {
  readonly events: number;
  readonly copy_bytes: number;
}

/** Computes rates and ratios. */
export function resultsOf(
  measurements: Measurements,
  formats: readonly string[],
  events: Events,
): Pick<BenchResult, 'floor' | 'pipeline' | 'duckdb' | 'exports'> {
  const { floor, pipeline, duckdb, runs, skipped } = measurements;
  const unlessSkipped = <Result>(name: string, result: () => Result): Result | Skipped => {
    const reason = skipped.get(name);
    return reason === undefined ? result() : { skipped: reason };
  };
  const compared = (repeats: readonly MeasuredProgram[]) => compare(repeats, measurements, events);
  return {
    floor: { client: floorClient(), ...throughputOf(floor, events.events, events.copy_bytes) },
    pipeline: unlessSkipped('pipeline', () => compared(pipeline)),
    duckdb: unlessSkipped('duckdb', (): DuckDbResult => ({
      version: duckdb[0]?.version ?? '',
      ...compared(duckdb),
    })),
    exports: formats.map((format) => {
      const repeats = runs.get(format) ?? [];
      return { format, ...unlessSkipped(format, () => exportResult(repeats, compared(repeats), pipeline)) };
    }),
  };
}

function compare(
  repeats: readonly MeasuredProgram[],
  { floor, pipeline, duckdb }: Measurements,
  { events, copy_bytes }: Events,
): Compared {
  const ratioTo = (others: readonly Measurement[]) =>
    others.length === 0 ? null : pairedRatios(repeats, others);
  return {
    ...throughputOf(repeats, events, copy_bytes),
    bytes: Math.max(...repeats.map(({ bytes }) => bytes)),
    peak_memory_bytes: largestKnown(repeats.map((one) => one.peak_memory_bytes)),
    s3_requests: medianKnown(repeats.map((one) => one.s3_requests)),
    ratio_to_floor: pairedRatios(repeats, floor),
    ratio_to_pipeline: ratioTo(pipeline),
    ratio_to_duckdb: ratioTo(duckdb),
  };
}

const exportResult = (
  repeats: readonly MeasuredRun[],
  compared: Compared,
  [piped]: readonly MeasuredProgram[],
): ExportResult => ({
  ...compared,
  seconds_from_command: statisticsOf(repeats.map((run) => run.seconds_from_command)),
  rows: Math.max(...repeats.map(({ rows }) => rows)),
  idle_memory_bytes: largestKnown(repeats.map((run) => run.idle_memory_bytes)),
  size_to_pipeline: piped ? rounded(compared.bytes / piped.bytes) : null,
});

const known = (values: readonly (number | null)[]): number[] => values.filter((value) => value !== null);

const largestKnown = (values: readonly (number | null)[]): number | null =>
  known(values).length === 0 ? null : Math.max(...known(values));

/** Of requests: the first export to a bucket sends some that find out what the store supports. */
const medianKnown = (values: readonly (number | null)[]): number | null =>
  known(values).length === 0 ? null : medianOf(known(values));

import type { BenchResult, ExportResult, PipelineResult, Skipped } from './result.ts';
import { statisticsOf, pairedRatio, rounded, throughputOf, type Measurement } from './statistics.ts';
import { floorClient } from './floor.ts';
import type { MeasuredRun } from './measured_run.ts';
import type { PipelineMeasurement } from './pipeline.ts';

/** The measurements of all repeats, in order. */
export interface Measurements {
  readonly floor: Measurement[];
  readonly pipeline: PipelineMeasurement[];
  /** By format, without unsupported ones. */
  readonly runs: ReadonlyMap<string, MeasuredRun[]>;
  /** Why a format is not supported. */
  readonly unsupportedFormats: ReadonlyMap<string, string>;
  /** Why the pipeline was skipped. */
  readonly pipelineObstacle: string | undefined;
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
): Pick<BenchResult, 'floor' | 'pipeline' | 'exports'> {
  const { floor } = measurements;
  return {
    floor: { client: floorClient(), ...throughput(floor, events) },
    pipeline: pipelineResult(measurements, events),
    exports: formats.map((format) => ({ format, ...exportResult(format, measurements, events) })),
  };
}

const throughput = (repeats: readonly Measurement[], { events, copy_bytes }: Events) =>
  throughputOf(repeats, events, copy_bytes);

function pipelineResult(measurements: Measurements, events: Events): PipelineResult | Skipped {
  const { floor, pipeline, pipelineObstacle } = measurements;
  if (pipelineObstacle !== undefined) return { skipped: pipelineObstacle };
  return {
    ...throughput(pipeline, events),
    bytes: largest(pipeline, ({ bytes }) => bytes),
    ratio_to_floor: pairedRatio(pipeline, floor),
  };
}

function exportResult(format: string, measurements: Measurements, events: Events): ExportResult | Skipped {
  const { floor, pipeline, runs, unsupportedFormats } = measurements;
  const reason = unsupportedFormats.get(format);
  if (reason !== undefined) return { skipped: reason };
  const repeats = runs.get(format) ?? [];
  const bytes = largest(repeats, (run) => run.bytes);
  const [piped] = pipeline;
  return {
    ...throughput(repeats, events),
    seconds_from_command: statisticsOf(repeats.map((run) => run.seconds_from_command)),
    rows: largest(repeats, ({ rows }) => rows),
    bytes,
    peak_memory_bytes: largestKnown(repeats.map((run) => run.peak_memory_bytes)),
    idle_memory_bytes: largestKnown(repeats.map((run) => run.idle_memory_bytes)),
    ratio_to_floor: pairedRatio(repeats, floor),
    times_faster_than_pipeline: piped ? pairedRatio(pipeline, repeats) : null,
    size_to_pipeline: piped ? rounded(bytes / piped.bytes) : null,
  };
}

const largest = <Item>(items: readonly Item[], value: (item: Item) => number): number =>
  Math.max(...items.map(value));

const largestKnown = (values: readonly (number | null)[]): number | null => {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
};

import type { Statistics } from '../results.ts';
import type { Compared, ExportsBenchResult } from './exports_bench.ts';

const statistics = (...all: number[]): Statistics => ({
  minimum: Math.min(...all),
  median: all.toSorted((left, right) => left - right)[Math.floor(all.length / 2)] ?? Number.NaN,
  all,
});

const compared = (seconds: Statistics): Compared => ({
  seconds,
  rows_per_second: 1_000,
  megabytes_per_second: 1,
  cpu_seconds: statistics(4),
  bytes: 10e6,
  peak_memory_bytes: 300e6,
  s3_requests: 12,
  ratio_to_floor: statistics(...seconds.all.map((value) => value / 2)),
  ratio_to_pipeline: statistics(...seconds.all.map((value) => value / 10)),
  ratio_to_duckdb: null,
  ratio_to_adbc: null,
  ratio_to_files: null,
});

/** A result whose Parquet export took so many seconds in each repeat; the floor took 2 s, the pipeline 10 s. */
export const exportsResult = (
  seconds: readonly number[],
  changes: Partial<ExportsBenchResult> = {},
): ExportsBenchResult => ({
  started_at: '2026-11-23T12:00:00.000Z',
  seconds: 60,
  machine: {
    cpus: 2,
    cpu_model: 'A & B',
    memory_bytes: 24e9,
    platform: 'linux x64',
    node: 'v24.0.0',
    postgresql: '18.0',
  },
  load: { before: 0, after: 1 },
  events: 1_000_000,
  copy_bytes: 446e6,
  repeat: seconds.length,
  warm: false,
  floor: { client: 'psql', ...compared(statistics(2)) },
  pipeline: compared(statistics(10)),
  duckdb: { skipped: 'Not requested.' },
  adbc: { skipped: 'Not requested.' },
  sling: { skipped: 'Not requested.' },
  exports: [
    {
      format: 'Parquet+zstd',
      ...compared(statistics(...seconds)),
      seconds_from_command: statistics(...seconds),
      rows: 1_000_000,
      idle_memory_bytes: 150e6,
      size_to_pipeline: 0.7,
      cpu_of_programs: { worker: 4, postgresql: 3, s3: 0.5, temporal: 0.3 },
    },
    { format: 'JSONLines+lzma', skipped: 'Not supported.' },
  ],
  ...changes,
});

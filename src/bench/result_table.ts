import type { BenchResult, Compared, ResultTable, Statistics, Throughput } from './result.ts';

const headings = [
  'export',
  'seconds',
  'min–max',
  '÷ floor',
  '÷ pipeline',
  '÷ DuckDB',
  'CPU s',
  'peak MB',
  'size MB',
  'S3 requests',
];

const megabytes = (bytes: number | null): string => (bytes === null ? '-' : (bytes / 1e6).toFixed(1));
const ratio = (ratios: Statistics | null): string => (ratios === null ? '-' : ratios.median.toFixed(2));

const times = ({ seconds }: Throughput): string[] => [
  seconds.median.toFixed(2),
  `${seconds.minimum.toFixed(2)}–${Math.max(...seconds.all).toFixed(2)}`,
];

const cells = (one: Compared): string[] => [
  ...times(one),
  ratio(one.ratio_to_floor),
  ratio(one.ratio_to_pipeline),
  ratio(one.ratio_to_duckdb),
  one.cpu_seconds.median.toFixed(2),
  megabytes(one.peak_memory_bytes),
  megabytes(one.bytes),
  one.s3_requests?.toLocaleString('en') ?? '-',
];

/** The result as a table. */
export function resultTable({ floor, pipeline, duckdb, exports }: BenchResult): ResultTable {
  return {
    headings,
    rows: [
      [
        `floor (${floor.client}, binary COPY)`,
        ...times(floor),
        ...['1.00', '-', '-', floor.cpu_seconds.median.toFixed(2)],
      ],
      'skipped' in pipeline ? ['shell pipeline: skipped'] : ['psql | gzip -6 | upload', ...cells(pipeline)],
      'skipped' in duckdb ? ['DuckDB: skipped'] : [`DuckDB ${duckdb.version} Parquet+zstd`, ...cells(duckdb)],
      ...exports.map((one) =>
        'skipped' in one ? [`exportd ${one.format}: skipped`] : [`exportd ${one.format}`, ...cells(one)],
      ),
    ],
  };
}

import type { BenchResult, ResultTable, Throughput } from './result.ts';

const headings = [
  'export',
  'seconds',
  'min',
  'rows/s',
  'MB/s',
  'CPU s',
  'idle MB',
  'peak MB',
  'size MB',
  '÷ floor',
  '× pipeline',
];

const megabytes = (bytes: number | null): string => (bytes === null ? '-' : (bytes / 1e6).toFixed(1));
const ratio = (value: number | null): string => (value === null ? '-' : value.toFixed(2));

const throughputCells = ({ seconds, rows_per_second, megabytes_per_second, cpu_seconds }: Throughput) => [
  seconds.median.toFixed(2),
  seconds.minimum.toFixed(2),
  rows_per_second.toLocaleString('en'),
  megabytes_per_second.toFixed(1),
  cpu_seconds.median.toFixed(2),
];

/** The result as a table. */
export function resultTable({ floor, pipeline, exports }: BenchResult): ResultTable {
  const floorRow = [
    `floor (${floor.client}, binary COPY)`,
    ...throughputCells(floor),
    '-',
    '-',
    '-',
    '1.00',
    '-',
  ];
  const pipelineRow =
    'skipped' in pipeline
      ? [`shell pipeline: ${pipeline.skipped}`]
      : [
          'psql | gzip -6 | upload',
          ...throughputCells(pipeline),
          '-',
          '-',
          megabytes(pipeline.bytes),
          ratio(pipeline.ratio_to_floor),
          '1.00',
        ];
  const exportRows = exports.map((one) =>
    'skipped' in one
      ? [`exportd ${one.format}: skipped`]
      : [
          `exportd ${one.format}`,
          ...throughputCells(one),
          megabytes(one.idle_memory_bytes),
          megabytes(one.peak_memory_bytes),
          megabytes(one.bytes),
          ratio(one.ratio_to_floor),
          ratio(one.times_faster_than_pipeline),
        ],
  );
  return { headings, rows: [floorRow, pipelineRow, ...exportRows] };
}

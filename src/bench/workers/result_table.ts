import type { ResultTable } from '../result.ts';
import type { LargeIntervalResult, SmallIntervalsResult, WorkersBenchResult } from './result.ts';

const megabytes = (bytes: number | null): string => (bytes === null ? '-' : (bytes / 1e6).toFixed(0));

const sharedHeadings = ['busy cores', 'worker CPU s', 'peak MB of each'];
const sharedCells = (one: LargeIntervalResult | SmallIntervalsResult): string[] => [
  one.busy_cores.toFixed(2),
  one.worker_cpu_seconds?.toFixed(1) ?? '-',
  one.peak_memory_bytes.map(megabytes).join(' '),
];

/** The result as tables. */
export function workersResultTables({
  slots,
  large_interval: large,
  small_intervals: small,
}: WorkersBenchResult): ResultTable[] {
  const perWorker = `${String(slots)} ${slots === 1 ? 'slot' : 'slots'} per worker`;
  const rate = `${String(large.connection_bytes_per_second / 1e6)} MB/s per connection`;
  return [
    {
      title: `One interval in ranges, ${large.format}, ${rate}, ${perWorker}`,
      headings: ['workers', 'seconds', 'rows/s', 'MB/s', 'ratio', 'ranges of each', ...sharedHeadings],
      rows: large.measurements.map((one) => [
        String(one.workers),
        one.seconds.toFixed(2),
        one.rows_per_second.toLocaleString('en'),
        one.megabytes_per_second.toFixed(1),
        one.ratio.toFixed(2),
        one.ranges_per_worker.join(' '),
        ...sharedCells(one),
      ]),
    },
    {
      title: `Small intervals of ${String(small.exports)} exports, ${perWorker}`,
      headings: [
        'S3 delay',
        'workers',
        'seconds',
        'intervals/s',
        'ratio',
        'intervals of each',
        ...sharedHeadings,
      ],
      rows: small.measurements.map((one) => [
        `${String(one.s3_delay_seconds * 1_000)} ms`,
        String(one.workers),
        one.seconds.toFixed(2),
        one.intervals_per_second.toFixed(2),
        one.ratio.toFixed(2),
        one.intervals_per_worker.join(' '),
        ...sharedCells(one),
      ]),
    },
  ];
}

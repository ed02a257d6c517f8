import type { BenchResult, Statistics } from '../result.ts';
import type { SavedResult } from '../saved_result.ts';
import type { WorkersBenchResult } from '../workers/result.ts';
import { barChart } from './bar_chart.ts';
import { lineChart, type Series } from './line_chart.ts';

/** The peak memory that an export of any size stays below, in megabytes. */
const memoryLimit = 400;

/** The charts of saved results by file name, without those that no result is for. */
export function chartsOf(saved: readonly SavedResult[]): Map<string, string> {
  const exports = saved
    .flatMap((one) => (one.benchmark === 'exports' ? [one.result] : []))
    .toSorted((left, right) => left.events - right.events);
  const workers = saved.flatMap((one) => (one.benchmark === 'workers' ? [one.result] : []));
  const [mostRepeated] = exports.toSorted((left, right) => right.repeat - left.repeat);
  const charts = new Map<string, string>();
  if (mostRepeated) {
    charts.set('ratios.svg', ratioChart(mostRepeated));
    charts.set('memory.svg', memoryChart(exports));
  }
  if (workers[0]) charts.set('workers.svg', workersChart(workers[0]));
  return charts;
}

const millions = (count: number): string => `${(count / 1e6).toLocaleString('en')} million`;

/** The time of each program divided by that of the floor. */
function ratioChart({ floor, pipeline, duckdb, exports, events, repeat, machine }: BenchResult): string {
  const bar = (label: string, ratio: Statistics, series: number) => ({
    label,
    bars: [
      {
        value: ratio.median,
        range: [ratio.minimum, Math.max(...ratio.all)] as const,
        label: ratio.median.toFixed(2),
        series,
      },
    ],
  });
  const one: Statistics = { minimum: 1, median: 1, all: [1] };
  return barChart({
    title: `Time to export ${millions(events)} events, ${String(machine.cpus)} cores`,
    axis: `time ÷ floor, median and range of ${String(repeat)} repeats (less is faster)`,
    series: ['others', 'exportd'],
    groups: [
      bar(`floor (${floor.client})`, one, 0),
      ...('skipped' in pipeline ? [] : [bar('psql | gzip -6 | upload', pipeline.ratio_to_floor, 0)]),
      ...('skipped' in duckdb ? [] : [bar('DuckDB Parquet+zstd', duckdb.ratio_to_floor, 0)]),
      ...exports.flatMap((found) =>
        'skipped' in found ? [] : [bar(`exportd ${found.format}`, found.ratio_to_floor, 1)],
      ),
    ],
  });
}

/** The peak memory of each format for each number of events. */
function memoryChart(results: readonly BenchResult[]): string {
  const formats = new Map<string, { value: number; label: string; series: number }[]>();
  for (const [series, { exports }] of results.entries())
    for (const one of exports) {
      if ('skipped' in one || one.peak_memory_bytes === null) continue;
      const value = one.peak_memory_bytes / 1e6;
      formats.set(one.format, [
        ...(formats.get(one.format) ?? []),
        { value, label: value.toFixed(0), series },
      ]);
    }
  return barChart({
    title: 'Memory of a worker that exports one interval',
    axis: 'peak resident memory, MB',
    series: results.map(({ events }) => `${millions(events)} rows`),
    groups: [...formats].map(([format, bars]) => ({ label: `exportd ${format}`, bars })),
    limit: { value: memoryLimit, label: `${String(memoryLimit)} MB` },
  });
}

/** The throughput of several workers divided by that of the smallest number. */
function workersChart({ large_interval, small_intervals }: WorkersBenchResult): string {
  const delays = new Set(small_intervals.measurements.map((one) => one.s3_delay_seconds));
  const series: Series[] = [
    {
      name: `one large interval, ${String(large_interval.connection_bytes_per_second / 1e6)} MB/s per connection`,
      points: large_interval.measurements.map(({ workers, ratio }) => ({ x: workers, y: ratio })),
    },
    ...[...delays].map((delay) => ({
      name: `small intervals, ${String(delay * 1_000)} ms per S3 request`,
      points: small_intervals.measurements
        .filter((one) => one.s3_delay_seconds === delay)
        .map(({ workers, ratio }) => ({ x: workers, y: ratio })),
    })),
  ];
  return lineChart({
    title: 'Throughput of several workers',
    xAxis: 'worker processes',
    yAxis: 'throughput ÷ that of one worker',
    series,
    diagonal: 'proportional',
  });
}

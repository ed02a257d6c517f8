import type { ResultTable } from '../result.ts';
import type { Percentiles, QueryBenchResult } from './result.ts';

const milliseconds = (value: number): string => value.toFixed(1);

/** The result as a table. */
export function queryResultTable({ insights }: QueryBenchResult): ResultTable {
  return {
    headings: ['insight', 'floor ms', 'product ms', 'ratio', 'results'],
    rows: insights.map((one) =>
      'skipped' in one
        ? [one.name, '-', '-', '-', `skipped: ${one.skipped}`]
        : [
            one.name,
            milliseconds(one.floor_ms.median),
            milliseconds(one.product_ms.median),
            one.ratio.toFixed(2),
            one.agrees ? 'equal' : 'DIFFERENT',
          ],
    ),
  };
}

/** The latency of a trivial query as a table. */
export function latencyTable({ latency }: QueryBenchResult): ResultTable[] {
  if (latency === null) return [];
  const { heavy_clients, heavy_statements, alone_ms, beside_ms, cancelled_after_ms } = latency;
  const row = (name: string, { median, p95, maximum }: Percentiles): string[] => [
    name,
    ...[median, p95, maximum].map(milliseconds),
  ];
  return [
    {
      title: `A trivial query of another project. ${String(heavy_statements)} heavy statements ran; ${milliseconds(cancelled_after_ms)} ms after their clients disconnected none did.`,
      headings: ['situation', 'median ms', 'p95 ms', 'maximum ms'],
      rows: [row('alone', alone_ms), row(`beside ${String(heavy_clients)} heavy queries`, beside_ms)],
    },
  ];
}

/** Compile times by the length of the text, as a table. */
export function compileTable({ compile_times }: QueryBenchResult): ResultTable[] {
  const [first] = compile_times;
  if (!first) return [];
  return [
    {
      title: 'Milliseconds to compile a text of this length in which one construct repeats',
      headings: [
        'construct',
        ...first.times.map(({ length }) => `${Math.round(length / 1_024)} KiB`),
        'outcome',
      ],
      rows: compile_times.map(({ name, times, rejection }) => [
        name,
        ...times.map(({ ms }) => milliseconds(ms)),
        rejection ?? 'compiles',
      ]),
    },
  ];
}

const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);

/** What the heaviest accepted queries cost a server, as a table. */
export function serverLoadTable({ server_load }: QueryBenchResult): ResultTable[] {
  if (server_load.length === 0) return [];
  return [
    {
      title: 'A server that runs each query four times at once',
      headings: [
        'query',
        'status',
        'response MiB',
        'ms',
        'longest silence ms',
        'longest turn CPU ms',
        'peak memory MiB',
      ],
      rows: server_load.map((one) => [
        one.name,
        String(one.status),
        mebibytes(one.response_bytes),
        milliseconds(one.ms),
        milliseconds(one.longest_silence_ms),
        milliseconds(one.longest_turn_ms),
        one.peak_memory_bytes === null ? '-' : mebibytes(one.peak_memory_bytes),
      ]),
    },
  ];
}

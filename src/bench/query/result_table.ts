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

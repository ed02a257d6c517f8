import type { ResultTable } from '../result.ts';
import type { FingerprintBenchResult, StatementResult } from './result.ts';

/** The result as a table. */
export function fingerprintResultTable({
  count,
  fingerprint,
  ratio,
  cut,
  numbering,
}: FingerprintBenchResult): ResultTable {
  const seconds = (value: number | undefined): string => value?.toFixed(3) ?? '-';
  const of = (name: string, { seconds: time, cpu_seconds: cpu }: StatementResult): string[] => [
    name,
    seconds(time.median),
    seconds(cpu?.median),
  ];
  return {
    headings: ['statement', 'seconds', 'CPU seconds'],
    rows: [
      of('count', count),
      of('fingerprint', fingerprint),
      ['fingerprint / count', ratio.seconds.toFixed(2), ratio.cpu_seconds?.toFixed(2) ?? '-'],
      ['cut by the fingerprint', seconds(cut.median), '-'],
      of('cut by numbering rows', numbering),
    ],
  };
}

import type { ResultTable } from '../result.ts';
import type { ReconcilersBenchResult } from './result.ts';

/** The result as a table: the recovery, and what each reconciler cost in the last pass. */
export function reconcilersResultTable({ recovery, steady }: ReconcilersBenchResult): ResultTable {
  const last = steady.at(-1);
  return {
    headings: ['pass', 'requests', 'seconds', 'described', 'expected'],
    rows: [
      [
        `recovery (${recovery.passes} passes)`,
        String(recovery.requests),
        recovery.seconds.toFixed(3),
        '-',
        '-',
      ],
      ...steady.map(({ requests, seconds }, index) => [
        `steady ${index + 1}`,
        String(requests),
        seconds.toFixed(3),
        '-',
        '-',
      ]),
      ...Object.entries(last?.reconcilers ?? {}).map(([name, counts]) => [
        name,
        String(counts.requests),
        counts.seconds.toFixed(3),
        String(counts.described),
        String(counts.expected),
      ]),
    ],
  };
}

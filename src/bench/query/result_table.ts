import type { ResultTable } from '../result.ts';
import type { QueryBenchResult } from './result.ts';

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

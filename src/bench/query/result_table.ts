import type { QueryBenchDocument } from './document.ts';

const milliseconds = (value: number): string => value.toFixed(1);

/** The result as a table for people: its headings and rows. */
export function queryResultTable({ insights }: QueryBenchDocument): {
  readonly headings: readonly string[];
  readonly rows: readonly (readonly string[])[];
} {
  return {
    headings: ['insight', 'floor ms', 'product ms', 'ratio', 'answers'],
    rows: insights.map((one) =>
      'skipped' in one
        ? [one.name, '-', '-', '-', `left out: ${one.skipped}`]
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

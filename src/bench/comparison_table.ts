import { figureNames, type Comparison, type FigureChange, type FigureName } from './compare_results.ts';
import type { ResultTable } from './result.ts';

const fixed = (digits: number) => (value: number) => value.toFixed(digits);
const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);

const columns: Readonly<Record<FigureName, readonly [heading: string, format: (value: number) => string]>> = {
  ratio_to_floor: ['÷ floor', fixed(2)],
  ratio_to_pipeline: ['÷ pipeline', fixed(2)],
  ratio_to_duckdb: ['÷ DuckDB', fixed(2)],
  seconds: ['seconds', fixed(2)],
  cpu_seconds: ['CPU s', fixed(2)],
  peak_memory_bytes: ['peak MB', megabytes],
  bytes: ['size MB', megabytes],
  s3_requests: ['S3 requests', fixed(0)],
};

/** A comparison as a table whose cells are `now (then, change)`. */
export const comparisonTable = ({ then, warnings, programs }: Comparison): ResultTable => ({
  title: [
    '',
    `Compared with ${then}: now (then, change), with ~ where the ranges of the repeats overlap`,
    ...warnings,
  ].join('\n'),
  headings: ['export', ...figureNames.map((name) => columns[name][0])],
  rows: programs.map(({ program, figures }) => [
    program,
    ...figureNames.map((name) => cell(figures[name], columns[name][1])),
  ]),
});

function cell(figure: FigureChange | null, format: (value: number) => string): string {
  if (figure === null) return '-';
  const { now, then, change, overlaps } = figure;
  const percent = `${change > 0 ? '+' : ''}${(change * 100).toFixed(1)} %`;
  return `${format(now)} (${format(then)}, ${overlaps && change !== 0 ? '~' : ''}${percent})`;
}

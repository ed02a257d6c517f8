import type { ResultTable, Statistics } from '../result.ts';
import type { IsolationBenchResult } from './result.ts';

/** The result as a table. */
export function isolationResultTable(result: IsolationBenchResult): ResultTable {
  const { alone, while_starting, while_waiting, deletion_seconds, projects, runs } = result;
  const row = (name: string, seconds: Statistics, ratio: number): string[] => [
    name,
    seconds.median.toFixed(3),
    Math.max(...seconds.all).toFixed(3),
    ratio.toFixed(2),
  ];
  const silent = `${String(projects)} × ${String(runs)} runs of silent buckets`;
  return {
    headings: ['an hour', 'seconds', 'maximum', 'ratio'],
    rows: [
      row('alone', alone, 1),
      row(`while ${silent} start`, while_starting.seconds, while_starting.ratio),
      row(`while ${silent} wait`, while_waiting.seconds, while_waiting.ratio),
      ['end of their runs after deletion', deletion_seconds.toFixed(3), '-', '-'],
    ],
  };
}

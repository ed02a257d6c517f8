import type { ResultTable } from '../result.ts';
import type { ConsoleBenchResult } from './result.ts';

/** The goal of every page. */
const goalMs = 300;

/** The result as a table: a line for each page. */
export const consoleResultTable = ({ exports, runs, pages }: ConsoleBenchResult): ResultTable => ({
  title: `${exports.toLocaleString('en')} exports, ${runs.toLocaleString('en')} runs`,
  headings: ['page', 'requests', 'kB', 'median ms', 'max ms', `below ${String(goalMs)} ms`],
  rows: pages.map(({ page, requests, bytes, median_ms: median, maximum_ms: maximum }) => [
    page,
    String(requests),
    (bytes / 1_000).toFixed(1),
    median.toFixed(1),
    maximum.toFixed(1),
    median < goalMs ? 'yes' : 'no',
  ]),
});

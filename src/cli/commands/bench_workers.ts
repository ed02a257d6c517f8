import { InvalidArgumentError, type Command } from 'commander';
import { parseId, parsePath } from '../arguments.ts';
import { addBenchmark } from './scratch_bench.ts';

const parseNumbers = (text: string): number[] => text.split(',').map(parseId);

function parseRate(text: string): number {
  const rate = Number(text);
  if (!(rate > 0)) throw new InvalidArgumentError('It must be a positive number.');
  return rate;
}

/** `bench workers`. */
export function addWorkersBenchCommand(bench: Command): void {
  const command = bench
    .command('workers')
    .description('benchmark several workers: the ranges of one interval, and small intervals of many exports')
    .option('--workers <list>', 'numbers of workers, separated by commas', parseNumbers, [1, 2, 4])
    .option('--slots <number>', 'intervals, or ranges of them, that a worker exports at once', parseId, 1)
    .option('--events <number>', 'number of events of the large interval', parseId, 700_000)
    .option('--ranges <number>', 'number of its ranges, about', parseId, 16)
    .option('--format <format>', 'its format', 'JSONLines+gzip')
    .option('--line <number>', 'megabytes per second of each connection to the source', parseRate, 10)
    .option('--exports <number>', 'number of exports with small intervals', parseId, 8)
    .option('--intervals <number>', 'number of intervals of each', parseId, 10)
    .option(
      '--s3-delay <list>',
      'milliseconds that each request to S3 is delayed, separated by commas',
      parseNumbers,
      [50, 250],
    )
    .option('--save <file>', 'write the result to this file as well', parsePath);
  addBenchmark(command, async () => {
    const [{ runWorkersBench }, { workersResultTables }] = await Promise.all([
      import('../../bench/workers/workers_bench.ts'),
      import('../../bench/workers/result_table.ts'),
    ]);
    return { run: runWorkersBench, tables: workersResultTables };
  });
}

import { InvalidArgumentError, type Command } from 'commander';
import { parseCount, parseId, parsePath } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { addBenchmark } from './scratch_bench.ts';

function parseInterval(text: string): string {
  const minutes = Number(/^every (\d{1,2}) minutes$/.exec(text)?.[1]);
  if (!(minutes >= 1 && 60 % minutes === 0))
    throw new InvalidArgumentError('It must be "every N minutes", where N divides 60.');
  return text;
}

function parseJitters(text: string): number[] {
  const jitters = text.split(',').map(Number);
  if (jitters.some((jitter) => !(jitter >= 0 && jitter <= 1)))
    throw new InvalidArgumentError('They must be numbers between 0 and 1, separated by commas.');
  return jitters;
}

/** `bench schedule`. */
export function addScheduleBenchCommand(bench: Command): void {
  const schedule = bench
    .command('schedule')
    .description('benchmark the ticks of many exports, and an empty backfill against no-op workflows')
    .option('--exports <number>', 'number of exports; 0 skips the ticks', parseCount, 1_000)
    .option('--interval <interval>', 'interval of the exports', parseInterval, 'every 5 minutes')
    .option('--ticks <number>', 'ticks per jitter', parseId, 2)
    .option(
      '--jitter <list>',
      'jitters to measure, as fractions of the interval, separated by commas',
      parseJitters,
      [0, 0.2],
    )
    .option('--with-rows <number>', 'exports that have rows in each interval', parseCount, 20)
    .option('--backfill <number>', 'intervals of the backfill', parseId, 1_000)
    .option('--noop <number>', 'no-op workflows before and after the backfill', parseId, 500)
    .option('--profile <folder>', 'write CPU profiles of the workers to this folder', parsePath);
  addBenchmark(
    schedule,
    async () => {
      const [{ runScheduleBench }, { resultTables }] = await Promise.all([
        import('../../bench/schedule/schedule_bench.ts'),
        import('../../bench/schedule/result_tables.ts'),
      ]);
      return { run: runScheduleBench, tables: resultTables };
    },
    ({ ticks }) => {
      if (ticks.some((one) => one.manifests < one.expected_runs))
        throw new CliError('Not every tick has a completed run with a manifest.');
    },
  );
}

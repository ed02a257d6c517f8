import { resolve } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import { parseCount, parseId } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import { addScratchOptions, runOnScratch, type ScratchOptions } from './scratch_bench.ts';

interface Options extends ScratchOptions {
  readonly exports: number;
  readonly interval: string;
  readonly ticks: number;
  readonly jitter: readonly number[];
  readonly withRows: number;
  readonly backfill: number;
  readonly bare: number;
  readonly profile?: string;
}

function parseInterval(text: string): string {
  const minutes = Number(/^every (\d{1,2}) minutes$/.exec(text)?.[1]);
  if (!(minutes >= 1 && 60 % minutes === 0))
    throw new InvalidArgumentError('It must be "every N minutes", N a divisor of 60.');
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
    .description('measure the ticks of many exports, and an empty backfill beside bare Temporal workflows')
    .option('--exports <number>', 'how many exports are created; 0 for none', parseCount, 1_000)
    .option('--interval <interval>', 'the interval of each', parseInterval, 'every 5 minutes')
    .option('--ticks <number>', 'how many ticks are measured for each jitter', parseId, 2)
    .option(
      '--jitter <list>',
      'fractions of the interval that starts are spread over',
      parseJitters,
      [0, 0.2],
    )
    .option('--with-rows <number>', 'how many of the exports have rows in each interval', parseCount, 20)
    .option('--backfill <number>', 'how many intervals are backfilled', parseId, 1_000)
    .option('--bare <number>', 'how many bare workflows are measured, before and after', parseId, 500)
    .option('--profile <folder>', 'keep CPU profiles of the workers there');
  addScratchOptions(schedule).action(async (_own: unknown, command: Command) => {
    // Some of them `bench` has as well, and takes them for its own.
    const options = command.optsWithGlobals<Options>();
    const [{ runScheduleBench }, { resultTables }] = await Promise.all([
      import('../../bench/schedule/schedule_bench.ts'),
      import('../../bench/schedule/result_tables.ts'),
    ]);
    const { jitter, profile, ...order } = options;
    const profileFolder = profile && resolve(profile);
    const found = await runOnScratch(options, (place, report, signal) =>
      runScheduleBench({ ...order, ...place, jitters: jitter, profileFolder }, report, signal),
    );
    printer(options)(found, () =>
      resultTables(found).flatMap(({ title, headings, rows }) => [title, ...table(headings, rows), '']),
    );
    const missing = found.ticks.filter((one) => one.manifests < one.expected_runs);
    if (missing.length > 0) throw new CliError('Not every tick ended in a Completed run with a manifest.');
  });
}

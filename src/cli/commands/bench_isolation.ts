import type { Command } from 'commander';
import { parseId } from '../arguments.ts';
import { printer, table } from '../output.ts';
import { addScratchOptions, runOnScratch, type ScratchOptions } from './scratch_bench.ts';

interface Options extends ScratchOptions {
  readonly events: number;
  readonly repeat: number;
  readonly projects: number;
  readonly runs: number;
}

/** `bench isolation`. */
export function addIsolationBenchCommand(bench: Command): void {
  const command = bench
    .command('isolation')
    .description('benchmark an export beside projects whose buckets do not respond')
    .option('--events <number>', 'number of events of each hour', parseId, 10_000)
    .option('--repeat <number>', 'hours that are exported in each situation', parseId, 7)
    .option('--projects <number>', 'projects with a bucket that does not respond', parseId, 10)
    .option('--runs <number>', 'active runs of each of these projects', parseId, 100);
  addScratchOptions(command).action(async (own: Options) => {
    // Commander assigns options that `bench` has too, such as --events, to `bench`.
    const fromBench = Object.entries(bench.opts()).filter(
      ([name]) => bench.getOptionValueSource(name) === 'cli',
    );
    const options: Options = { ...own, ...Object.fromEntries(fromBench) };
    const [{ runIsolationBench }, { isolationResultTable }] = await Promise.all([
      import('../../bench/isolation/isolation_bench.ts'),
      import('../../bench/isolation/result_table.ts'),
    ]);
    const document = await runOnScratch(options, (location, report, signal) =>
      runIsolationBench({ ...options, ...location }, report, signal),
    );
    printer(options)(document, () => {
      const { headings, rows } = isolationResultTable(document);
      return table(headings, rows);
    });
  });
}

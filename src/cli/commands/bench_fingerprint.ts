import type { Command } from 'commander';
import { parseId } from '../arguments.ts';
import { printer, table } from '../output.ts';
import { addScratchOptions, runOnScratch, type ScratchOptions } from './scratch_bench.ts';

interface Options extends ScratchOptions {
  readonly events: number;
  readonly repeat: number;
}

/** `bench fingerprint`. */
export function addFingerprintBenchCommand(bench: Command): void {
  const command = bench
    .command('fingerprint')
    .description('benchmark the fingerprint of an interval against a count of its rows')
    .option('--events <number>', 'number of events', parseId, 1_000_000)
    .option('--repeat <number>', 'number of measurements', parseId, 7);
  addScratchOptions(command).action(async (own: Options) => {
    // Commander assigns options that `bench` has too, such as --events, to `bench`.
    const fromBench = Object.entries(bench.opts()).filter(
      ([name]) => bench.getOptionValueSource(name) === 'cli',
    );
    const options: Options = { ...own, ...Object.fromEntries(fromBench) };
    const [{ runFingerprintBench }, { fingerprintResultTable }] = await Promise.all([
      import('../../bench/fingerprint/fingerprint_bench.ts'),
      import('../../bench/fingerprint/result_table.ts'),
    ]);
    const document = await runOnScratch(options, (location, report, signal) =>
      runFingerprintBench({ ...options, ...location }, report, signal),
    );
    printer(options)(document, () => {
      const { headings, rows } = fingerprintResultTable(document);
      return table(headings, rows);
    });
  });
}

import type { Command } from 'commander';
import { parseId } from '../arguments.ts';
import { addBenchmark } from './scratch_bench.ts';

/** `bench fingerprint`. */
export function addFingerprintBenchCommand(bench: Command): void {
  const command = bench
    .command('fingerprint')
    .description('benchmark the fingerprint of an interval against a count of its rows')
    .option('--events <number>', 'number of events', parseId, 1_000_000)
    .option('--repeat <number>', 'number of measurements', parseId, 7);
  addBenchmark(command, async () => {
    const [{ runFingerprintBench }, { fingerprintResultTable }] = await Promise.all([
      import('../../bench/fingerprint/fingerprint_bench.ts'),
      import('../../bench/fingerprint/result_table.ts'),
    ]);
    return { run: runFingerprintBench, tables: (result) => [fingerprintResultTable(result)] };
  });
}

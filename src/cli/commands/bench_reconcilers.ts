import type { Command } from 'commander';
import { parseCount, parseId } from '../arguments.ts';
import { printer, table } from '../output.ts';
import { addScratchOptions, runOnScratch, type ScratchOptions } from './scratch_bench.ts';

interface Options extends ScratchOptions {
  readonly exports: number;
  readonly runs: number;
  readonly passes: number;
}

/** `bench reconcilers`. */
export function addReconcilersBenchCommand(bench: Command): void {
  const command = bench
    .command('reconcilers')
    .description('benchmark passes of the reconcilers: requests to Temporal and seconds')
    .option('--exports <number>', 'number of live exports', parseId, 10_000)
    .option('--runs <number>', 'how many of them have an active run', parseCount, 500)
    .option('--passes <number>', 'number of passes that find nothing to repair', parseId, 3);
  addScratchOptions(command).action(async (_own: unknown, selected: Command) => {
    const options = selected.optsWithGlobals<Options>();
    const [{ runReconcilersBench }, { reconcilersResultTable }] = await Promise.all([
      import('../../bench/reconcilers/reconcilers_bench.ts'),
      import('../../bench/reconcilers/result_table.ts'),
    ]);
    const document = await runOnScratch(options, (location, report, signal) =>
      runReconcilersBench({ ...options, ...location }, report, signal),
    );
    printer(options)(document, () => {
      const { headings, rows } = reconcilersResultTable(document);
      return table(headings, rows);
    });
  });
}

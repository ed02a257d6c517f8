import type { Command } from 'commander';
import { parsePath } from '../arguments.ts';
import { printer } from '../output.ts';

/** `bench plot`. */
export function addPlotCommand(bench: Command): void {
  bench
    .command('plot')
    .description('draw the saved results of a folder as SVG: ratios, memory and numbers of workers')
    .argument('[folder]', 'by default src/bench/figures', parsePath)
    .option('--json', 'print JSON')
    .action(async (folder: string | undefined, _options: object, command: Command) => {
      const { figuresFolder, plotFigures } = await import('../../bench/plot/plot.ts');
      const files = plotFigures(folder ?? figuresFolder);
      printer(command.optsWithGlobals<{ json?: boolean }>())({ files }, () => files);
    });
}

import type { Command } from 'commander';
import { parseCount } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { sendCommand } from '../created_object.ts';
import { differenceLines } from '../export_tables.ts';
import { printer } from '../output.ts';
import { openService, serviceCommand, type ServiceCommandOptions } from '../service_client.ts';

interface DifferenceOptions extends ServiceCommandOptions {
  readonly keep?: boolean;
  readonly remove?: number;
  readonly reason?: string;
}

/** `export difference`: the rows of an interval that the source lacks, and the decision about them. */
export function addDifferenceCommand(exports: Command): void {
  serviceCommand(
    exports,
    'difference',
    'show the rows of an interval that its files have and the source lacks, and keep or remove them',
  )
    .argument('<id>')
    .argument('<start>', 'start of the interval, as an ISO 8601 time')
    .option('--keep', 'keep them: the files stay as they are, and the alarm ends')
    .option('--remove <rows>', 'export the interval again without them: their number', parseCount)
    .option('--reason <text>', 'why; required to keep or remove them')
    .action(async (id: string, start: string, options: DifferenceOptions) => {
      const { keep, remove: rows, reason } = options;
      const path = { batch_export_id: id, start };
      const isDecision = keep === true || rows !== undefined;
      if (keep === true && rows !== undefined) throw new CliError('Pass either --keep or --remove.');
      if (!isDecision && reason !== undefined) throw new CliError('--reason needs --keep or --remove.');
      if (!isDecision) {
        const difference = await openService(options).get(differencePath, { path });
        printer(options)(difference, () => differenceLines(difference));
        return;
      }
      if (reason === undefined) throw new CliError('Say why with --reason.');
      const decision = keep === true ? 'keep' : 'remove';
      const body = { decision, reason, ...(rows !== undefined && { rows }) } as const;
      await sendCommand(
        options,
        (service) => service.command('POST', differencePath, { path, body }),
        keep === true ? 'Kept.' : 'The interval is exported again without these rows.',
      );
    });
}

const differencePath = '/batch_exports/{batch_export_id}/intervals/{start}/difference';

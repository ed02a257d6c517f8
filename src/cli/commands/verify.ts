import type { Command } from 'commander';
import { createKeyRing } from '../../config/key_ring.ts';
import type { DestinationFault } from '../../destination/destination.ts';
import type { VerificationReport } from '../../verify/report.ts';
import { CliError } from '../cli_error.ts';
import { describeFailure } from '../failures.ts';
import { printer } from '../output.ts';
import { commandSettings } from '../running_stack.ts';
import { reportLines } from '../verification_lines.ts';

interface Options {
  readonly from?: string;
  readonly to?: string;
  readonly deep?: boolean;
  readonly json?: boolean;
}

/** Ends for a script: nothing is wrong, something is, or nobody could look. */
const exitCodes = { well: 0, wrong: 1, unknown: 2 };

/** `verify`: whether what an export wrote is what the source has. */
export function addVerifyCommand(program: Command): void {
  program
    .command('verify')
    .description('compare what a batch export wrote with the source: lost, doubled and changed rows, gaps')
    .argument('<batch export id>')
    .option('--from <time>', 'ISO 8601; leave out intervals that end before it')
    .option('--to <time>', 'ISO 8601; leave out intervals that begin at it or later')
    .option('--deep', 'compare every value, not only that each row is there')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      '\nEnds with 0 when nothing is wrong, 1 when something is, 2 when it could not look.',
    )
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? exitCodes.well : exitCodes.unknown))
    .action(async (id: string, options: Options) => {
      const report = await look(id, options).catch((error: unknown) => {
        throw new CliError(describeFailure(error), exitCodes.unknown);
      });
      printer(options)(report, () => reportLines(report));
      process.exitCode = report.ok ? exitCodes.well : exitCodes.wrong;
    });
}

async function look(batchExportId: string, { from, to, deep }: Options): Promise<VerificationReport> {
  const [{ verifyBatchExport }, { withPool }] = await Promise.all([
    import('../../verify/verify_batch_export.ts'),
    import('../with_pool.ts'),
  ]);
  const settings = commandSettings(process.env);
  const keyRing = createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS);
  const sourceUrl = settings.SOURCE_DATABASE_URL ?? settings.DATABASE_URL;
  const progress = createProgress(process.stderr.isTTY);
  try {
    return await withPool((pool) =>
      verifyBatchExport(
        { pool, keyRing, settings, sourceUrl, onFault: progress.waiting },
        { batchExportId, from, to, deep, onProgress: progress.checked },
      ),
    );
  } finally {
    progress.clear();
  }
}

/** Tells a person at a terminal how far it is, and everybody what it waits for. */
function createProgress(isTerminal: boolean) {
  const told = new Set<string>();
  const clear = () => {
    if (isTerminal) process.stderr.write('\r\u001b[K');
  };
  return {
    clear,
    checked: (checked: number, intervals: number) => {
      if (isTerminal) process.stderr.write(`\rChecked ${checked} of ${intervals} intervals.`);
    },
    waiting: ({ type, message }: DestinationFault) => {
      if (told.has(type)) return;
      told.add(type);
      clear();
      process.stderr.write(`${message} Trying again.\n`);
    },
  };
}

import type { Command } from 'commander';
import { createKeyRing } from '../../config/key_ring.ts';
import type { DestinationError } from '../../destination/destination.ts';
import type { VerificationReport } from '../../verify/report.ts';
import { CliError } from '../cli_error.ts';
import { describeError } from '../error_messages.ts';
import { printer } from '../output.ts';
import { commandSettings } from '../running_stack.ts';
import { reportLines } from '../verification_lines.ts';

interface Options {
  readonly from?: string;
  readonly to?: string;
  readonly deep?: boolean;
  readonly fast?: boolean;
  readonly json?: boolean;
}

/** Exit codes: no findings, findings, or the verification failed. */
const exitCodes = { ok: 0, findings: 1, error: 2 };

/** `verify`: compares the exported objects with the source. */
export function addVerifyCommand(program: Command): void {
  program
    .command('verify')
    .description(
      'compare the objects of a batch export with the source: gaps, missing, duplicate and mismatched rows',
    )
    .argument('<batch export id>')
    .option('--from <time>', 'ISO 8601; skip intervals that end before')
    .option('--to <time>', 'ISO 8601; skip intervals that start then or later')
    .option('--deep', 'compare every value, not only the keys of the rows')
    .option('--fast', 'compare the fingerprints of manifests only, without reading files')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExit codes: 0 no findings, 1 findings, 2 the verification failed.')
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? exitCodes.ok : exitCodes.error))
    .action(async (id: string, options: Options) => {
      const report = await verify(id, options).catch((error: unknown) => {
        throw new CliError(describeError(error), exitCodes.error);
      });
      printer(options)(report, () => reportLines(report));
      process.exitCode = report.ok ? exitCodes.ok : exitCodes.findings;
    });
}

async function verify(batchExportId: string, { from, to, deep, fast }: Options): Promise<VerificationReport> {
  const [{ verifyBatchExport }, { withPool }] = await Promise.all([
    import('../../verify/verify_batch_export.ts'),
    import('../with_pool.ts'),
  ]);
  const settings = commandSettings(process.env);
  const keyRing = createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS);
  const sourceUrl = settings.SOURCE_DATABASE_URL;
  const progress = createProgress(process.stderr.isTTY);
  try {
    return await withPool((pool) =>
      verifyBatchExport(
        { pool, keyRing, settings, sourceUrl, onError: progress.retrying },
        { batchExportId, from, to, deep, fast, onProgress: progress.checked },
      ),
    );
  } finally {
    progress.clear();
  }
}

/** Reports progress on a terminal, and each type of retried error once. */
function createProgress(isTerminal: boolean) {
  const reportedTypes = new Set<string>();
  const clear = () => {
    if (isTerminal) process.stderr.write('\r\u001b[K');
  };
  return {
    clear,
    checked: (checked: number, intervals: number) => {
      if (isTerminal) process.stderr.write(`\rChecked ${checked} of ${intervals} intervals.`);
    },
    retrying: ({ type, message }: DestinationError) => {
      if (reportedTypes.has(type)) return;
      reportedTypes.add(type);
      clear();
      process.stderr.write(`${message} Retrying.\n`);
    },
  };
}

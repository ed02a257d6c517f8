import type { Command } from 'commander';
import { createKeyRing } from '../../config/key_ring.ts';
import type { DestinationError } from '../../destination/destination.ts';
import type { Finding, NamedRow, Note, VerificationReport } from '../../verify/report.ts';
import { CliError, describeError } from '../cli_error.ts';
import { counted } from '../../domain/in_words.ts';
import { printer, table } from '../output.ts';
import { commandSettings } from '../running_stack.ts';

/** Formats a report: a table of the intervals, the findings, the notes and a summary. */
const reportLines = (report: VerificationReport): string[] => [
  ...table(
    ['interval start', 'interval end', 'generation', 'files', 'rows', 'in source', 'rejected', 'findings'],
    report.intervals.map((interval) => [
      shortTime(interval.start),
      shortTime(interval.end),
      interval.generation,
      interval.files,
      interval.rows,
      interval.source_rows,
      interval.rejected,
      interval.findings,
    ]),
  ),
  ...report.findings.flatMap(findingLines),
  ...(report.notes.length === 0 ? [] : ['', ...report.notes.map(noteLine)]),
  '',
  ...coverageLines(report),
  summaryLine(report),
];

/** What is exported; of a requested time also how many rows. */
const coverageLines = ({ coverage, totals }: VerificationReport): string[] => {
  if (coverage === null) return [];
  const { sentence, span } = coverage;
  if (span === null) return [sentence];
  const { start, end, source_rows } = span;
  return [
    `From ${shortTime(start)} to ${shortTime(end)}: ${counted(source_rows, 'row')} in the source, ${counted(totals.rows, 'row')} in files.`,
    sentence,
  ];
};

const findingLines = (finding: Finding): string[] => [
  '',
  `${finding.kind.toUpperCase()}  ${timesOf(finding)}${finding.object ?? ''}`.trimEnd(),
  `  ${finding.detail}`,
  ...finding.rows.map((row) => `  ${rowName(row)}`),
  ...(namedRows(finding) < finding.count && finding.rows.length > 0 ? ['  … and more'] : []),
];

const noteLine = (note: Note): string => `note  ${timesOf(note)}${note.detail}`;

const rowName = ({ id, column }: NamedRow): string => (column === undefined ? id : `${id}  ${column}`);

const namedRows = ({ rows }: Finding): number => new Set(rows.map(({ id }) => id)).size;

const timesOf = ({ start, end }: { start: string | null; end: string | null }): string =>
  start === null || end === null ? '' : `${shortTime(start)} to ${shortTime(end)}  `;

/** Intervals start and end at whole seconds. */
const shortTime = (time: string): string => time.replace('.000Z', 'Z');

function summaryLine({ ok, deep, fast, totals, findings }: VerificationReport): string {
  const checked = [
    counted(totals.manifests, 'manifest'),
    counted(totals.files, 'file'),
    counted(totals.rows, 'row'),
    ...(['pending', 'expired'] as const)
      .filter((reason) => totals[reason] > 0)
      .map((reason) => `${counted(totals[reason], 'interval')} ${reason}`),
  ].join(', ');
  if (ok) return `${checked}: no findings${hintOf({ deep, fast })}.`;
  const rows = (['missing', 'duplicate', 'unexpected', 'mismatched'] as const)
    .filter((kind) => totals[kind] > 0)
    .map((kind) => `${counted(totals[kind], 'row')} ${kind}`);
  const gaps = totals.gaps > 0 ? [counted(totals.gaps, 'gap')] : [];
  return `${checked}: ${[counted(findings.length, 'finding'), ...rows, ...gaps].join(', ')}.`;
}

/** What was not compared, and the option that compares it. */
function hintOf({ deep, fast }: Pick<VerificationReport, 'deep' | 'fast'>): string {
  if (fast) return ' (no file was read; omit --fast to read them)';
  return deep ? '' : ' (use --deep to compare every value)';
}

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
      'compare the objects of a batch export with the source: gaps, missing, duplicate and mismatched rows; with --from and --to, whether that time is complete',
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
  const [{ verifyBatchExport }, { targetChecks: targets }, { withPool }] = await Promise.all([
    import('../../verify/verify_batch_export.ts'),
    import('../../temporal/capabilities.ts'),
    import('../control_database.ts'),
  ]);
  const settings = await commandSettings(process.env);
  const keyRing = createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS);
  const sourceUrl = settings.SOURCE_DATABASE_URL;
  const progress = createProgress(process.stderr.isTTY);
  try {
    return await withPool((pool) =>
      verifyBatchExport(
        { pool, keyRing, settings, sourceUrl, targets, onError: progress.retrying },
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

import type { Finding, NamedRow, Note, VerificationReport } from '../verify/report.ts';
import { counted, table } from './output.ts';

/** Formats a report: a table of the intervals, the findings, the notes and a summary. */
export const reportLines = (report: VerificationReport): string[] => [
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
  summaryLine(report),
];

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

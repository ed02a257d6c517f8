import type { Finding, NamedRow, Note, VerificationReport } from '../verify/report.ts';
import { table } from './output.ts';

/** A report for people: the intervals, what is wrong, what is worth knowing, and a last line that says it all. */
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
  lastLine(report),
];

const findingLines = (finding: Finding): string[] => [
  '',
  `${finding.kind.toUpperCase()}  ${timesOf(finding)}${finding.object ?? ''}`.trimEnd(),
  `  ${finding.detail}`,
  ...finding.rows.map((row) => `  ${rowName(row)}`),
  ...(named(finding) < finding.count && finding.rows.length > 0 ? ['  and more'] : []),
];

const noteLine = (note: Note): string => `note  ${timesOf(note)}${note.detail}`;

const rowName = ({ id, column }: NamedRow): string => (column === undefined ? id : `${id}  ${column}`);

const named = ({ rows }: Finding): number => new Set(rows.map(({ id }) => id)).size;

const timesOf = ({ start, end }: { start: string | null; end: string | null }): string =>
  start === null || end === null ? '' : `${shortTime(start)} to ${shortTime(end)}  `;

/** Intervals begin and end with whole seconds. */
const shortTime = (time: string): string => time.replace('.000Z', 'Z');

function lastLine({ ok, deep, totals, findings }: VerificationReport): string {
  const looked = `${counted(totals.manifests, 'manifest')}, ${counted(totals.files, 'file')}, ${counted(totals.rows, 'row')}`;
  if (ok)
    return `${looked}: nothing is wrong${deep ? '' : '; values were not compared one by one (--deep does)'}.`;
  const rows = (['missing', 'duplicate', 'unexpected', 'mismatched'] as const)
    .filter((kind) => totals[kind] > 0)
    .map((kind) => `${counted(totals[kind], 'row')} ${kind}`);
  const gaps = totals.gaps > 0 ? [counted(totals.gaps, 'gap')] : [];
  return `${looked}: ${[counted(findings.length, 'finding'), ...rows, ...gaps].join(', ')}.`;
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

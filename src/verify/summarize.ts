import type { DataInterval } from '../domain/intervals.ts';
import { earlierFilesOf } from './earlier_files.ts';
import type { IntervalCheck } from './check_interval.ts';
import type { ManifestCheck } from './manifest_check.ts';
import { intervalOf } from './ranges.ts';
import type { Finding, FindingKind, IntervalReport, Note, NoteReason, VerificationReport } from './report.ts';

/** Creates the report. `rest` contains what does not belong to a single manifest. */
export function summarize(
  batchExportId: string,
  options: Pick<VerificationReport, 'deep' | 'fast' | 'from' | 'to'>,
  intervals: readonly IntervalCheck[],
  rest: { readonly findings: readonly Finding[]; readonly notes: readonly Note[] },
): VerificationReport {
  const findings = [
    ...intervals.flatMap(({ findings, check }) => [...findings, ...(check?.collector.findings() ?? [])]),
    ...rest.findings,
  ].sort(byTime);
  const notes = [
    ...rest.notes,
    ...intervals.flatMap(({ notes, check }) => [...notes, ...(check?.collector.notes() ?? [])]),
  ];
  const reports = intervals.flatMap(({ check }) => (check ? [reportOf(check, findings)] : []));
  const rowsOf = (kind: FindingKind) =>
    sum(
      findings.filter((finding) => finding.kind === kind),
      ({ count }) => count,
    );
  const intervalsOf = (reason: NoteReason) =>
    sum(
      notes.filter((note) => note.reason === reason),
      (note) => note.intervals,
    );
  return {
    ok: findings.length === 0,
    batch_export_id: batchExportId,
    ...options,
    totals: {
      manifests: reports.length,
      files: sum(reports, ({ files }) => files),
      rows: sum(reports, ({ rows }) => rows),
      bytes: sum(reports, ({ bytes }) => bytes),
      rejected: sum(reports, ({ rejected }) => rejected),
      missing: rowsOf('missing'),
      duplicate: rowsOf('duplicate'),
      unexpected: rowsOf('unexpected'),
      mismatched: rowsOf('mismatched'),
      gaps: findings.filter(({ kind }) => kind === 'gap').length,
      pending: intervalsOf('pending'),
      expired: intervalsOf('expired'),
    },
    intervals: reports,
    findings,
    notes,
  };
}

function reportOf(check: ManifestCheck, findings: readonly Finding[]): IntervalReport {
  const { manifest, name } = check.found;
  const interval = intervalOf(manifest);
  return {
    ...interval,
    manifest: name,
    model: manifest.model,
    generation: manifest.generation,
    settled: manifest.settled,
    files: manifest.files.length,
    earlier_files: earlierFilesOf(manifest).length,
    rows: check.rows,
    bytes: check.bytes,
    source_rows: check.source_rows,
    rejected: manifest.rejected,
    findings: findings.filter((finding) => isOf(finding, interval)).length,
  };
}

const isOf = ({ start, end }: Finding, interval: DataInterval): boolean =>
  start === interval.start && end === interval.end;

const byTime = (one: Finding, other: Finding): number =>
  Date.parse(one.start ?? '') - Date.parse(other.start ?? '') || 0;

const sum = <Item>(items: readonly Item[], value: (item: Item) => number): number =>
  items.reduce((total, item) => total + value(item), 0);

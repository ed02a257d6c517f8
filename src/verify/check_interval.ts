import type { DataInterval } from '../domain/intervals.ts';
import { type CheckContext, checkManifest, type ManifestCheck } from './check_manifest.ts';
import { earlierFilesOf } from './checked_files.ts';
import { foreignManifestBecause, intervalOf } from './locations.ts';
import { type KeptDifferences, splitKept } from './kept_findings.ts';
import { type IntervalManifests, type LoadedManifest, readManifest } from './manifests.ts';
import {
  createFindingCollector,
  type Finding,
  type FindingKind,
  type IntervalReport,
  type Note,
  type NoteReason,
  type VerificationReport,
} from './report.ts';

/** Maximum number of checks of an interval that is exported again meanwhile. */
const maxRounds = 5;

/** The result of checking one interval. */
export interface IntervalCheck {
  readonly interval: DataInterval;
  /** The check of the current manifest; null when no manifest can be read. */
  readonly check: ManifestCheck | null;
  /** Problems of the manifests themselves. */
  readonly findings: readonly Finding[];
  readonly notes: readonly Note[];
}

/** What is found in an answer of the store, which may be wrong once: whatever is between it and exportd can answer too. */
const readingProblems: ReadonlySet<FindingKind> = new Set([
  'manifest_unreadable',
  'file_missing',
  'file_changed',
  'file_unreadable',
]);

/**
 * Checks the manifest of an interval. If there are problems and the manifest has been replaced meanwhile, they may
 * concern the files of the old one, so the interval is checked again; also if objects could not be read as they should be,
 * once.
 */
export async function checkInterval(
  context: CheckContext,
  interval: IntervalManifests,
): Promise<IntervalCheck> {
  for (let round = 1; ; round += 1) {
    const { current, findings, notes } = await chooseManifest(context, interval);
    const check = current && (await checkManifest(context, current));
    const problems = [...findings, ...(check?.collector.findings() ?? [])];
    if (round === 1 && (!current || problems.some(({ kind }) => readingProblems.has(kind)))) continue;
    const hasNoProblems = problems.length === 0 && check?.misplacedRows.length === 0;
    if (!current || hasNoProblems || round === maxRounds || !(await isReplaced(context, current)))
      return { interval, check, findings, notes };
  }
}

const isReplaced = async ({ signal }: CheckContext, found: LoadedManifest): Promise<boolean> =>
  (await readManifest(found, signal))?.text !== found.text;

/** Reads the manifests of an interval. The highest generation wins. */
async function chooseManifest(
  context: CheckContext,
  interval: IntervalManifests,
): Promise<{ current: LoadedManifest | null; findings: readonly Finding[]; notes: readonly Note[] }> {
  const { countManifest, signal } = context;
  const collector = createFindingCollector(interval, '');
  const manifests: LoadedManifest[] = [];
  for (const name of interval.names) {
    const read = await readManifest(name, signal);
    if (!read) continue;
    const { manifest, text, problem } = read;
    countManifest(text.length);
    if (!manifest) {
      collector.add('manifest_unreadable', name.name, problem);
      continue;
    }
    const foreign = await foreignManifestBecause(context, name.location, interval, manifest);
    if (foreign !== null) collector.add('manifest_misnamed', name.name, foreign);
    else manifests.push({ ...name, manifest, text });
  }
  manifests.sort((one, other) => other.manifest.generation - one.manifest.generation);
  const [current, ...older] = manifests;
  for (const { name, manifest } of older)
    collector.note(
      `${name} has generation ${manifest.generation}. It is superseded by generation ${current?.manifest.generation} in ${current?.name}.`,
    );
  return { current: current ?? null, findings: collector.findings(), notes: collector.notes() };
}

/** Creates the report. `rest` contains what does not belong to a single manifest; what is `kept` is no finding. */
export function summarize(
  batchExportId: string,
  options: Pick<VerificationReport, 'deep' | 'fast' | 'from' | 'to' | 'coverage'>,
  intervals: readonly IntervalCheck[],
  rest: { readonly findings: readonly Finding[]; readonly notes: readonly Note[] },
  kept: KeptDifferences,
): VerificationReport {
  const found = [
    ...intervals.flatMap(({ findings, check }) => [...findings, ...(check?.collector.findings() ?? [])]),
    ...rest.findings,
  ].sort(byTime);
  const { findings, notes: keptNotes } = splitKept(found, kept);
  const notes = [
    ...rest.notes,
    ...keptNotes,
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

const isOf = ({ start, end }: Pick<Finding, 'start' | 'end'>, interval: DataInterval): boolean =>
  start === interval.start && end === interval.end;

const byTime = (one: Finding, other: Finding): number =>
  Date.parse(one.start ?? '') - Date.parse(other.start ?? '') || 0;

const sum = <Item>(items: readonly Item[], value: (item: Item) => number): number =>
  items.reduce((total, item) => total + value(item), 0);

import { countIntervals } from '../domain/interval_ranges.ts';
import type { DataInterval, ScheduleRevision } from '../domain/intervals.ts';
import type { TimeRange } from './coverage.ts';
import type { Expirations } from './expirations.ts';
import type { OwedTime } from './owed_time.ts';
import { currentRange, type RangeContext } from './ranges.ts';
import type { Finding, Note, NoteReason } from './report.ts';
import type { SourceRows } from './source_rows.ts';
import { intersect, subtract } from './time_sets.ts';

/** Dependencies for finding gaps. */
export interface GapContext extends RangeContext {
  readonly source: Pick<SourceRows, 'count'>;
  readonly owed: OwedTime;
  readonly expirations: Expirations;
}

/** Time without a manifest: what is owed is a finding, all other is a note. */
export interface Gaps {
  readonly findings: readonly Finding[];
  readonly notes: readonly Note[];
}

/**
 * Compares what the export owes with the time that manifests cover, within the range.
 * @param relist called when something is missing: the intervals that were exported during the check
 */
export async function findGaps(
  context: GapContext,
  covered: readonly DataInterval[],
  range: TimeRange,
  relist: () => Promise<readonly DataInterval[]>,
): Promise<Gaps> {
  const { owed, expirations } = context;
  const requested = [
    { start: range.from ?? '0001-01-01T00:00:00.000Z', end: range.to ?? '9999-01-01T00:00:00.000Z' },
  ];
  const missing = subtract(intersect(owed.owed, requested), covered);
  const coveredNow = missing.length === 0 ? covered : [...covered, ...(await relist())];
  const absent = subtract(missing, coveredNow);
  const expired: DataInterval[] = [];
  for (const one of absent) expired.push(...intersect([one], await expirations.expiredIntervals(one)));
  const findings: Finding[] = [];
  for (const gap of subtract(absent, expired)) findings.push(await gapFinding(context, gap));
  const notOwed = owed.notOwed.flatMap(({ reason, ...one }) =>
    subtract(intersect([one], requested), coveredNow).map((left) => noteOf(left, reason, owed.revisions)),
  );
  return { findings, notes: [...notOwed, ...expired.map((one) => noteOf(one, 'expired', owed.revisions))] };
}

async function gapFinding(context: GapContext, gap: DataInterval): Promise<Finding> {
  const rows = await context.source.count(await currentRange(context, gap));
  const intervals = countIntervals(context.owed.revisions, gap);
  const subject = intervals === 1 ? 'this interval' : `these ${intervals} intervals`;
  return {
    kind: 'gap',
    ...gap,
    object: null,
    count: rows,
    rows: [],
    detail: `No manifest covers ${subject}. The source has ${rows} rows in ${intervals === 1 ? 'it' : 'them'}.`,
  };
}

const details: Readonly<Record<NoteReason, string>> = {
  pending: 'Not exported yet: the interval ended or was requested recently.',
  paused: 'Not exported: the export was paused.',
  'before start_at': 'Not exported: it ends before start_at.',
  'after end_at': 'Not exported: it ends after end_at.',
  deleted: 'Not exported: the export was deleted.',
  'backfill paused': 'Not exported yet: the backfill is paused.',
  'backfill cancelled': 'Not exported: the backfill was cancelled before it reached it.',
  expired: 'Expired: a lifecycle rule of the bucket deleted the manifest.',
};

const noteOf = (range: DataInterval, reason: NoteReason, revisions: readonly ScheduleRevision[]): Note => ({
  ...range,
  reason,
  intervals: countIntervals(revisions, range),
  detail: details[reason],
});

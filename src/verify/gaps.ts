import { countIntervals, type DataInterval, type ScheduleRevision } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';
import { currentRange, type RangeContext } from './locations.ts';
import { intersect, type OwedTime, subtract } from './owed_time.ts';
import type { Finding, Note, NoteReason } from './report.ts';
import type { SourceRows } from './source_rows.ts';
import { isExpired } from '../domain/expiration.ts';

/** A requested time range; null is unbounded. */
export interface TimeRange {
  readonly from: string | null;
  readonly to: string | null;
}

/** Two intervals with the time that both cover. */
interface OverlappingPair<Interval extends DataInterval> {
  readonly shared: DataInterval;
  readonly one: Interval;
  readonly other: Interval;
}

const milliseconds = (time: string): number => new Date(time).getTime();

/** Sorts intervals by time. */
export const sortIntervals = <Interval extends DataInterval>(intervals: readonly Interval[]): Interval[] =>
  intervals.toSorted(
    (one, other) =>
      milliseconds(one.start) - milliseconds(other.start) || milliseconds(one.end) - milliseconds(other.end),
  );

/** Finds all pairs of intervals that overlap. */
export function overlappingPairs<Interval extends DataInterval>(
  intervals: readonly Interval[],
): OverlappingPair<Interval>[] {
  const pairs: OverlappingPair<Interval>[] = [];
  let reaching: Interval[] = [];
  for (const interval of sortIntervals(intervals)) {
    reaching = reaching.filter(({ end }) => milliseconds(end) > milliseconds(interval.start));
    for (const one of reaching)
      pairs.push({
        shared: { start: interval.start, end: earlier(one.end, interval.end) },
        one,
        other: interval,
      });
    reaching.push(interval);
  }
  return pairs;
}

const earlier = (one: string, other: string): string =>
  milliseconds(one) < milliseconds(other) ? one : other;

/** Whether an interval overlaps `[from, to)`; null is unbounded. */
export const overlaps = ({ start, end }: DataInterval, { from, to }: TimeRange): boolean =>
  (from === null || milliseconds(end) > milliseconds(from)) &&
  (to === null || milliseconds(start) < milliseconds(to));

/**
 * What the bucket may have deleted by its own rules. The journal says when an object was written and which expiration
 * the server reported; it never says that an object exists.
 */
export interface Expirations {
  /** The intervals that overlap a range and whose newest manifest has expired. */
  expiredIntervals(range: DataInterval): Promise<DataInterval[]>;
  /** Whether a file of an interval has expired. */
  isExpiredFile(interval: DataInterval, key: string): Promise<boolean>;
}

interface WrittenRow {
  readonly start: string;
  readonly end: string;
  readonly expires_at: string | null;
  readonly written_at: string;
}

/** Creates a reader of expirations. */
export function createExpirations(
  pool: Pool,
  {
    batch_export_id,
    retention_days,
  }: { readonly batch_export_id: string; readonly retention_days: number | null },
  now: Date,
): Expirations {
  const isExpiredRow = (row: WrittenRow) => isExpired(row, retention_days, now);
  return {
    async expiredIntervals({ start, end }) {
      const { rows } = await pool.query<WrittenRow>(
        `select data_interval_start as start, data_interval_end as end, expires_at::text, completed_at as written_at
         from exportd.intervals where batch_export_id = $1 and collapsed_generation is not null
           and data_interval_end > $2 and data_interval_start < $3
         union all
         select * from (select distinct on (run.data_interval_start, run.data_interval_end)
           run.data_interval_start as start, run.data_interval_end as end,
           event.data->>'expires_at' as expires_at, event.recorded_at as written_at
         from exportd.batch_export_runs run
         join exportd.journal_events event on event.stream_type = 'run' and event.stream_id = run.id
           and event.event_type = 'RunCompleted'
         where run.batch_export_id = $1 and run.data_interval_end > $2 and run.data_interval_start < $3
         order by run.data_interval_start, run.data_interval_end, event.global_position desc) known`,
        [batch_export_id, start, end],
      );
      return rows.filter(isExpiredRow);
    },
    async isExpiredFile(interval, key) {
      const { rows } = await pool.query<WrittenRow>(
        // The reply to writing a file of rejected rows is not recorded: it expires with the manifest.
        `select coalesce(event.data->'file'->>'expires_at',
             case event.event_type when 'RunRejectedFilePlanned' then completed.data->>'expires_at' end) as expires_at,
           event.recorded_at as written_at
         from exportd.batch_export_runs run
         join exportd.journal_events event on event.stream_type = 'run' and event.stream_id = run.id
           and event.event_type in ('RunFileCompleted', 'RunRejectedFilePlanned')
         left join exportd.journal_events completed on completed.stream_type = 'run'
           and completed.stream_id = run.id and completed.event_type = 'RunCompleted'
         where run.batch_export_id = $1 and run.data_interval_start = $2 and run.data_interval_end = $3
           and event.data->'file'->>'key' = $4
         order by event.global_position desc limit 1`,
        [batch_export_id, interval.start, interval.end, key],
      );
      if (rows.length > 0) return rows.some(isExpiredRow);
      // Of collapsed runs the ledger knows when the first object of the interval expires.
      const { rows: collapsed } = await pool.query<WrittenRow>(
        `select data_interval_start as start, data_interval_end as end, expires_at::text, completed_at as written_at
         from exportd.intervals where batch_export_id = $1 and collapsed_generation is not null
           and data_interval_start = $2 and data_interval_end = $3`,
        [batch_export_id, interval.start, interval.end],
      );
      return collapsed.some(isExpiredRow);
    },
  };
}

/** Dependencies for finding gaps. */
interface GapContext extends RangeContext {
  readonly source: Pick<SourceRows, 'count'>;
  readonly owed: OwedTime;
  readonly expirations: Expirations;
}

/** Time without a manifest: what is owed is a finding, all other is a note. */
interface Gaps {
  readonly findings: readonly Finding[];
  readonly notes: readonly Note[];
  /** The intervals that have a manifest, also those that got it during the check. */
  readonly covered: readonly DataInterval[];
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
  const notes = [...notOwed, ...expired.map((one) => noteOf(one, 'expired', owed.revisions))];
  return { findings, notes, covered: coveredNow };
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

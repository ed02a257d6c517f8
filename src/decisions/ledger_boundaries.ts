/**
 * The rules of time zones change with a new version of Node.js, also for the past. Boundaries that were computed once are
 * in the ledger and in manifests: an interval that is cut elsewhere would export rows of another one again.
 */
import type { BackfillRange } from '../domain/backfill.ts';
import { CommandRejected } from '../domain/errors.ts';
import {
  countIntervals,
  type DataInterval,
  intervalFrom,
  type ScheduleRevision,
} from '../domain/intervals.ts';
import type { Connection, Pool } from '../journal/database.ts';

/** An export, and the revisions by which the intervals are cut that the ledger does not have. */
interface IntervalSource {
  readonly batchExportId: string;
  readonly revisions: readonly ScheduleRevision[];
}

/**
 * The interval of an export that starts at a boundary, or, if the ledger has an interval that contains the boundary, the one
 * after it. An interval of the ledger keeps its bounds; another one ends where one of the ledger starts.
 */
export async function findIntervalFrom(
  connection: Connection,
  { batchExportId, revisions }: IntervalSource,
  boundary: string,
): Promise<DataInterval> {
  for (let start = boundary; ;) {
    const computed = intervalFrom(revisions, new Date(start));
    const { rows } = await connection.query<{ within: DataInterval | null; next: string | null }>({
      name: 'recorded-intervals',
      text: `select ${containing('$2')} as within, (
          select data_interval_start from exportd.intervals
          where batch_export_id = $1 and run_id is not null and data_interval_start > $2 and data_interval_start < $3
          order by data_interval_start limit 1) as next`,
      values: [batchExportId, start, computed.end],
    });
    const { within = null, next = null } = rows[0] ?? {};
    if (within === null) return next === null ? computed : { start, end: next };
    if (Date.parse(within.start) === Date.parse(start)) return within;
    start = within.end;
  }
}

/**
 * Corrects the whole intervals of a requested range by the ledger: at its ends the intervals of the ledger keep their bounds,
 * and those that the request does not touch are left out.
 * @param range the request, and its whole intervals as they are computed
 */
export async function toRecordedRange(
  database: Connection | Pool,
  { batchExportId, revisions }: IntervalSource,
  range: BackfillRange & { readonly start_at: string; readonly end_at: string },
): Promise<BackfillRange> {
  const instantBefore = (time: string): string => `${time}::timestamptz - interval '1 millisecond'`;
  const ends = await database.query<Record<'first' | 'before' | 'last' | 'after', DataInterval | null>>(
    `select ${containing('$2::timestamptz')} as first, ${containing('$3::timestamptz')} as before,
       ${containing(instantBefore('$4'))} as last, ${containing(instantBefore('$5'))} as after`,
    [batchExportId, range.start_at, range.start, range.end_at, range.end],
  );
  const { first, before, last, after } = ends.rows[0] ?? {};
  const start = first?.start ?? before?.end ?? range.start;
  const end = last?.end ?? after?.start ?? range.end;
  const { rows } = await database.query<DataInterval & { recorded: boolean }>(
    `select starts as start, ends as end, recorded from (
       select lag(data_interval_end, 1, $2) over in_order as starts, data_interval_start as ends, false as recorded
       from (select data_interval_start, data_interval_end from exportd.intervals
         where batch_export_id = $1 and run_id is not null and data_interval_start >= $2 and data_interval_end <= $3
         union all select $3, $3) as inside window in_order as (order by data_interval_start)
       union all
       select null, null, true from exportd.intervals
       where batch_export_id = $1 and run_id is not null and data_interval_start >= $2 and data_interval_end <= $3
     ) part where recorded or starts < ends`,
    [batchExportId, start, end],
  );
  const intervals = rows.reduce(
    (sum, { recorded, ...hole }) => sum + (recorded ? 1 : countIntervals(revisions, hole)),
    0,
  );
  return { start, end, intervals };
}

/** Parts of a range that a backfill keeps with its state, which is stored with each of its steps. */
const maxParts = 500;

/**
 * Finds the parts of a range that have no files, oldest first, whatever the export owes. What has expired had files.
 * @param range whole intervals, by the ledger
 * @returns the parts, and the range from the first to the last of them with the number of their intervals
 * @throws CommandRejected when nothing is missing, or in too many parts
 */
export async function requireMissing(
  database: Connection | Pool,
  source: IntervalSource,
  { start, end }: DataInterval,
): Promise<{ readonly range: BackfillRange; readonly parts: readonly DataInterval[] }> {
  const { rows: parts } = await database.query<DataInterval>(
    `select ${isoOf('starts')} as start, ${isoOf('ends')} as end from (
       select lag(data_interval_end, 1, $2) over in_order as starts, data_interval_start as ends
       from (select data_interval_start, data_interval_end from exportd.intervals
         where batch_export_id = $1 and manifest_run_id is not null
           and data_interval_start >= $2 and data_interval_end <= $3
         union all select $3, $3) as exported window in_order as (order by data_interval_start)
     ) part where starts < ends order by starts limit ${maxParts + 1}`,
    [source.batchExportId, start, end],
  );
  const [first, last] = [parts[0], parts.at(-1)];
  if (!first || !last)
    throw new CommandRejected('invalid_input', 'Every interval of this range is exported.', 'only');
  if (parts.length > maxParts)
    throw new CommandRejected(
      'invalid_input',
      `More than ${maxParts} parts of this range are missing. Split the range.`,
      'only',
    );
  let intervals = 0;
  for (const part of parts) {
    const counted = { ...part, intervals: 0, start_at: part.start, end_at: part.end };
    intervals += (await toRecordedRange(database, source, counted)).intervals;
  }
  return { range: { start: first.start, end: last.end, intervals }, parts };
}

/** SQL: the interval of export $1 in the ledger that contains an instant, as JSON; null if none does. */
const containing = (instant: string): string => `(
  select case when last.data_interval_end > ${instant} then
      jsonb_build_object('start', ${isoOf('last.data_interval_start')}, 'end', ${isoOf('last.data_interval_end')}) end
  from (select data_interval_start, data_interval_end from exportd.intervals
    where batch_export_id = $1 and run_id is not null and data_interval_start <= ${instant}
    order by data_interval_start desc, data_interval_end desc limit 1) as last)`;

const isoOf = (time: string): string =>
  `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

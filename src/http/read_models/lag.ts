import type { LiveBatchExport } from '../../domain/batch_export.ts';
import { countIntervals, type DataInterval } from '../../domain/intervals.ts';
import { dueRanges } from '../../domain/due_intervals.ts';
import type { Pool } from '../../journal/database.ts';
import type { LagResponse } from '../schemas/lag.ts';

/** The number of gaps in a response; the newest are kept. */
const maxGaps = 100;

/** The ended intervals of an export for which the schedule has not created runs yet. */
interface IntervalsWithoutRun {
  readonly id: string;
  readonly ranges: readonly DataInterval[];
  readonly intervals: number;
}

interface IntervalsWithRun {
  readonly id: string;
  /** Intervals of the schedule with a run and without a manifest, and the gaps of backfills. */
  readonly intervals: number;
  readonly seconds: number;
  /** Intervals that a backfill completed before the schedule reached them. */
  readonly completed_ahead: number;
  readonly completed_ahead_seconds: number;
  readonly last_completed_interval_end: string | null;
  readonly gaps: LagResponse['gaps'];
}

/**
 * The lag of each live export, by id; null if this version cannot read its schedule, which `onUnreadable` reports. Needs
 * two statements for any number of exports and intervals: intervals without runs are counted from the schedule's state and
 * the database's clock. Without new events, the lag changes only when an interval ends.
 */
export async function readLags(
  pool: Pool,
  exports: readonly { readonly id: string }[],
  onUnreadable: (id: string, error: unknown) => void,
): Promise<ReadonlyMap<string, LagResponse | null>> {
  const { rows } = await pool.query<ScheduleState>(
    `select stream_id as id, state, statement_timestamp() as now from exportd.stream_states
     where stream_type = 'batch_export' and stream_id = any($1) and state->>'status' = 'live'`,
    [exports.map(({ id }) => id)],
  );
  return lagsOf(pool, rows, onUnreadable);
}

/** The state of an export's schedule, and when it was read. */
export interface ScheduleState {
  readonly id: string;
  readonly state: LiveBatchExport;
  readonly now: string;
}

/** The same for states that the caller has read, with one statement. */
export async function lagsOf(
  pool: Pool,
  states: readonly ScheduleState[],
  onUnreadable: (id: string, error: unknown) => void,
): Promise<ReadonlyMap<string, LagResponse | null>> {
  const unreadable: string[] = [];
  const withoutRun = intervalsWithoutRun(states, (id, error) => {
    unreadable.push(id);
    onUnreadable(id, error);
  });
  const withRun = new Map(
    (await readIntervalsWithRun(pool, withoutRun)).map((one) => [one.id, one] as const),
  );
  return new Map<string, LagResponse | null>([
    ...unreadable.map((id) => [id, null] as const),
    ...withoutRun.flatMap(({ id, ranges, intervals }) => {
      const found = withRun.get(id);
      if (!found) return [];
      const lag = {
        intervals: found.intervals + intervals - found.completed_ahead,
        seconds: found.seconds + sum(ranges.map(secondsOf)) - found.completed_ahead_seconds,
        last_completed_interval_end: found.last_completed_interval_end,
        gaps: found.gaps.map((gap) => ({
          data_interval_start: new Date(gap.data_interval_start).toISOString(),
          data_interval_end: new Date(gap.data_interval_end).toISOString(),
          run_id: gap.run_id,
          status: gap.status,
        })),
      };
      return [[id, lag] as const];
    }),
  ]);
}

const intervalsWithoutRun = (
  states: readonly ScheduleState[],
  onUnreadable: (id: string, error: unknown) => void,
): IntervalsWithoutRun[] =>
  states.flatMap(({ id, state, now }) => {
    try {
      const ranges = dueRanges(state, new Date(now));
      const intervals = sum(ranges.map((range) => countIntervals(state.revisions, range)));
      return [{ id, ranges, intervals }];
    } catch (error) {
      onUnreadable(id, error);
      return [];
    }
  });

/**
 * Reads the intervals without a manifest from the ledger. Those in a range without runs are counted with the range: the
 * schedule may have created their runs after `withoutRun` was read, and a backfill's may have failed there.
 */
async function readIntervalsWithRun(
  pool: Pool,
  withoutRun: readonly IntervalsWithoutRun[],
): Promise<IntervalsWithRun[]> {
  const ranges = withoutRun.flatMap(({ id, ranges }) => ranges.map((range) => ({ id, ...range })));
  const { rows } = await pool.query<IntervalsWithRun>(
    `with due as (
       select * from unnest($2::uuid[], $3::timestamptz[], $4::timestamptz[]) as due (id, range_start, range_end)
     )
     select export.id, with_run.intervals, with_run.seconds, with_run.gaps,
       coalesce(ahead.intervals, 0) as completed_ahead, coalesce(ahead.seconds, 0) as completed_ahead_seconds,
       completed.last_completed_interval_end
     from unnest($1::uuid[]) as export (id)
     cross join lateral (
       with without_manifest as (
         select interval.data_interval_start, interval.data_interval_end, interval.run_id, interval.status,
           interval.reason, interval.is_scheduled
         from exportd.intervals interval
         where interval.batch_export_id = export.id and interval.status <> 'exported'
           and interval.manifest_run_id is null and interval.run_id is not null
       )
       select count(*) as intervals, ${totalSeconds} as seconds,
         (select coalesce(json_agg(gap), '[]') from (
            select data_interval_start, data_interval_end, run_id, reason as status from without_manifest
            where status = 'gap' order by data_interval_start desc limit $5) gap) as gaps
       from without_manifest interval
       where (is_scheduled or status = 'gap') and status <> 'held' and not exists (
         select from due where due.id = export.id
           and interval.data_interval_start >= due.range_start and interval.data_interval_end <= due.range_end)
     ) with_run
     left join (
       select due.id, count(*) as intervals, ${totalSeconds} as seconds
       from due join exportd.intervals interval on interval.batch_export_id = due.id
         and interval.manifest_run_id is not null
         and interval.data_interval_start >= due.range_start and interval.data_interval_end <= due.range_end
       group by due.id
     ) ahead on ahead.id = export.id
     left join lateral (
       select interval.data_interval_end as last_completed_interval_end from exportd.intervals interval
       where interval.batch_export_id = export.id and interval.manifest_run_id is not null
       order by interval.data_interval_start desc limit 1
     ) completed on true`,
    [
      withoutRun.map(({ id }) => id),
      ranges.map(({ id }) => id),
      ranges.map(({ start }) => start),
      ranges.map(({ end }) => end),
      maxGaps,
    ],
  );
  return rows;
}

const totalSeconds = 'coalesce(sum(extract(epoch from data_interval_end - data_interval_start)), 0)::float8';

const secondsOf = ({ start, end }: DataInterval): number => (Date.parse(end) - Date.parse(start)) / 1_000;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

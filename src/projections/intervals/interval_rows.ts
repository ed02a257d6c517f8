import type { SkippedRange } from '../../domain/batch_export.ts';
import type { RunSpec } from '../../domain/run_state.ts';
import type { Connection } from '../../journal/database.ts';

/**
 * Makes a new run the newest one of its interval. If the schedule had skipped the interval, the rest of the skipped range
 * keeps its own rows: one before the interval and one after it.
 */
export async function openInterval(connection: Connection, runId: string, spec: RunSpec): Promise<void> {
  await connection.query({
    name: 'open-interval',
    text: `with skipped as (
        delete from exportd.intervals where batch_export_id = $1 and run_id is null
          and data_interval_start = (
            select max(range.data_interval_start) from exportd.intervals range
            where range.batch_export_id = $1 and range.run_id is null and range.data_interval_start <= $2)
          and data_interval_end >= $3
          -- The interval's own row is updated below.
          and (data_interval_start, data_interval_end) <> ($2, $3)
        returning data_interval_start, data_interval_end, status, reason
      ), rest as (
        insert into exportd.intervals (batch_export_id, data_interval_start, data_interval_end, status, reason)
        select $1, part.starts, part.ends, skipped.status, skipped.reason
        from skipped cross join lateral (values
          (skipped.data_interval_start, $2::timestamptz), ($3::timestamptz, skipped.data_interval_end)
        ) as part (starts, ends) where part.starts < part.ends
      )
      insert into exportd.intervals as interval (batch_export_id, data_interval_start, data_interval_end, status,
        run_id, is_scheduled)
      values ($1, $2, $3, 'running', $4, $5)
      on conflict (batch_export_id, data_interval_start, data_interval_end) do update
        set status = 'running', reason = null, run_id = excluded.run_id, taken_keys = 0,
          is_scheduled = interval.is_scheduled or excluded.is_scheduled`,
    values: [
      spec.batch_export_id,
      spec.data_interval_start,
      spec.data_interval_end,
      runId,
      spec.backfill_id === null,
    ],
  });
}

/**
 * SQL: the parts of a range between the intervals of the ledger that lie in it, as `starts` and `ends`. The arguments are
 * expressions of the export's id and of the bounds.
 */
export const partsWithoutEntry = (batchExportId: string, start: string, end: string): string => `
  select hole.starts, hole.ends from (
    select lag(inside.data_interval_end, 1, ${start}) over (order by inside.data_interval_start) as starts,
      inside.data_interval_start as ends
    from (
      select data_interval_start, data_interval_end from exportd.intervals
      where batch_export_id = ${batchExportId} and data_interval_start >= ${start} and data_interval_end <= ${end}
      -- Ends the last hole.
      union all select ${end}, ${end}
    ) inside
  ) hole where hole.starts < hole.ends`;

/** Adds a range that the schedule skips, without the intervals that already have a run. */
export async function insertSkippedRange(
  connection: Connection,
  batchExportId: string,
  { start, end, reason }: SkippedRange,
): Promise<void> {
  await connection.query(
    `insert into exportd.intervals (batch_export_id, data_interval_start, data_interval_end, status, reason)
     select $1, starts, ends, $4, $5 from (${partsWithoutEntry('$1', '$2::timestamptz', '$3::timestamptz')}) part`,
    [batchExportId, start, end, skipStatusOf(reason), reason],
  );
}

/** The status of a range that the schedule skips. */
export const skipStatusOf = (reason: SkippedRange['reason']): 'paused' | 'excluded' =>
  reason === 'paused' ? 'paused' : 'excluded';

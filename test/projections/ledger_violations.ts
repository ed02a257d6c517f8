import type { Pool } from '../../src/journal/database.ts';

/** Each statement returns the intervals that break an invariant of the interval ledger. */
const violations = {
  'a run without its interval, or with another newest run': `
    select newest.data_interval_start from (
      select distinct on (batch_export_id, data_interval_start, data_interval_end) * from exportd.batch_export_runs
      order by batch_export_id, data_interval_start, data_interval_end, position desc) newest
    left join exportd.intervals interval using (batch_export_id, data_interval_start, data_interval_end)
    where interval.run_id is distinct from newest.id`,
  // A run that found its rows unchanged has Completed, and published none.
  'another manifest than that of the newest run that published one': `
    select interval.data_interval_start from exportd.intervals interval where collapsed_generation is null
      and manifest_run_id is distinct from (
      select run.id from exportd.batch_export_runs run where run.batch_export_id = interval.batch_export_id
        and run.data_interval_start = interval.data_interval_start
        and run.data_interval_end = interval.data_interval_end and run.status = 'Completed'
        and run.manifest_key is not null
      order by run.position desc limit 1)`,
  'running without an active run': `
    select interval.data_interval_start from exportd.intervals interval
    left join exportd.batch_export_runs run on run.id = interval.run_id
    where (interval.status = 'running') <> coalesce(run.status in ('Starting', 'Running'), false)`,
  'a gap with a manifest or an automatic retry, or the reverse': `
    select interval.data_interval_start from exportd.intervals interval
    join exportd.batch_export_runs run on run.id = interval.run_id
    where (interval.status = 'gap') <> (interval.manifest_run_id is null and run.finished_at is not null
      and run.retry_at is null and interval.held is null)`,
  // A run after a collapse does not know that the schedule had one.
  'scheduled in the ledger only, or among the runs only': `
    select interval.data_interval_start from exportd.intervals interval
    join exportd.batch_export_runs run on run.id = interval.run_id
    where run.is_scheduled and not interval.is_scheduled or interval.is_scheduled and not run.is_scheduled
      and not exists (select from exportd.journal_events where event_type = 'HistoryCollapsed')`,
  'overlapping rows': `
    select one.data_interval_start from exportd.intervals one join exportd.intervals other
      on other.batch_export_id = one.batch_export_id and other.data_interval_start < one.data_interval_end
      and other.data_interval_end > one.data_interval_start and other.ctid <> one.ctid`,
  'covered ranges that are not those of the rows, or the reverse': `
    with row_range as (
      select batch_export_id, unnest(range_agg(tstzrange(data_interval_start, data_interval_end))) as range
      from exportd.intervals group by 1
    ), covered as (select batch_export_id, tstzrange(starts, ends) as range from exportd.covered_ranges)
    select lower(range) as data_interval_start from (
      (table row_range except table covered) union all (table covered except table row_range)) differing`,
};

/** Returns the broken invariants of the interval ledger, each with the intervals that break it. */
export async function ledgerViolations(pool: Pool): Promise<Record<string, string[]>> {
  const broken: Record<string, string[]> = {};
  for (const [invariant, statement] of Object.entries(violations)) {
    const { rows } = await pool.query<{ data_interval_start: string }>(statement);
    if (rows.length > 0) broken[invariant] = rows.map((row) => row.data_interval_start);
  }
  return broken;
}

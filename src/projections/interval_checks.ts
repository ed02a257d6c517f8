import type { Findings } from '../domain/difference.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';
import { deletedWithExport, type StoredRows } from '../journal/stored_rows.ts';

/** What has compared the files of an interval with the source beside the maintenance, such as what a person has asked for. */
interface IntervalCheck extends DataInterval {
  readonly batch_export_id: string;
  readonly checked_by: string;
  /** When it began, ISO 8601. */
  readonly checked_at: string;
  /** How the files differ from the source, for people; null if they do not. */
  readonly difference: string | null;
  readonly findings: Findings;
}

/** The newest checks of intervals. */
export const intervalCheckRows: StoredRows = {
  tables: ['interval_checks'],
  expired: [
    `delete from exportd.interval_checks where ctid in (
       select ctid from exportd.interval_checks where checked_at < clock_timestamp() - $1 * interval '1 millisecond'
       limit $2)`,
  ],
};

export const deleteChecksOfExport = deletedWithExport('interval_checks');

/** Stores the newest check of an interval by its kind, unless the export was deleted. */
export async function recordIntervalCheck(
  pool: Pool,
  { batch_export_id, start, end, checked_by, checked_at, difference, findings }: IntervalCheck,
): Promise<void> {
  await pool.query(
    `insert into exportd.interval_checks
       (batch_export_id, data_interval_start, data_interval_end, checked_by, checked_at, difference, findings)
     select $1, $2, $3, $4, $5, $6, $7 where exists (select from exportd.batch_exports where id = $1 and not deleted)
     on conflict (batch_export_id, data_interval_start, data_interval_end, checked_by)
       do update set checked_at = excluded.checked_at, difference = excluded.difference, findings = excluded.findings`,
    [batch_export_id, start, end, checked_by, checked_at, difference, JSON.stringify(findings)],
  );
}

/** The newest check of an interval; undefined without one. */
export async function readNewestCheck(
  pool: Pool,
  batchExportId: string,
  { start, end }: DataInterval,
): Promise<Pick<IntervalCheck, 'checked_by' | 'checked_at' | 'difference'> | undefined> {
  const { rows } = await pool.query<Pick<IntervalCheck, 'checked_by' | 'checked_at' | 'difference'>>(
    `select checked_by, checked_at, difference from exportd.interval_checks
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3
     order by checked_at desc limit 1`,
    [batchExportId, start, end],
  );
  return rows[0];
}

/** SQL: the checks with their intervals. */
export const checkedIntervals = `exportd.interval_checks checked
  join exportd.intervals interval using (batch_export_id, data_interval_start, data_interval_end)`;

/** SQL condition on `checkedIntervals`: the interval differs, and was neither exported again since nor kept as it is. */
export const differsNow = `checked.difference is not null and interval.completed_at <= checked.checked_at
  and (interval.decision->>'decision' = 'keep'
    and (interval.decision->>'at')::timestamptz >= checked.checked_at) is not true`;

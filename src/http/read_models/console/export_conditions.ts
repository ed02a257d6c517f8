import type { Pool } from '../../../journal/database.ts';
import type { ExportCondition } from '../../schemas/console_overview.ts';
import type { IntervalStatus } from '../../schemas/interval.ts';
import type { LagResponse } from '../../schemas/lag.ts';

/** What the ledger of an export says about its condition. */
export interface LedgerSummary {
  /** The status of the newest interval whose run has ended; null without one. */
  readonly newest_ended: IntervalStatus | null;
  readonly has_held: boolean;
  /** Whether an interval whose files are still kept is unsettled. */
  readonly has_unsettled: boolean;
}

/** An export whose ledger is read. */
export interface LedgerExport {
  readonly id: string;
  readonly retention_days: number | null;
}

/**
 * SQL: whether the files of an interval are deleted at a time. `retentionDays` and `at` are SQL as well.
 */
export const isExpired = (retentionDays: string, at: string): string =>
  `least(expires_at, completed_at + make_interval(days => ${retentionDays})) <= ${at}`;

/** Summarises the ledgers of exports with one statement, which reads few rows of each. */
export async function readLedgerSummaries(
  pool: Pool,
  exports: readonly LedgerExport[],
  now: string,
): Promise<ReadonlyMap<string, LedgerSummary>> {
  const { rows } = await pool.query<LedgerSummary & { readonly id: string }>(
    `with export as (select * from unnest($1::uuid[], $2::int[]) as export (id, retention_days)),
     unfinished as (
       select export.id, bool_or(interval.status = 'held') as has_held,
         bool_or(interval.status = 'unsettled'
           and ${isExpired('export.retention_days', '$3::timestamptz')} is not true) as has_unsettled
       from export join exportd.intervals interval on interval.batch_export_id = export.id
         and interval.status <> 'exported'
       group by export.id
     )
     select export.id, newest.status as newest_ended, coalesce(unfinished.has_held, false) as has_held,
       coalesce(unfinished.has_unsettled, false) as has_unsettled
     from export
     left join unfinished on unfinished.id = export.id
     left join lateral (
       select interval.status from exportd.intervals interval
       where interval.batch_export_id = export.id and interval.status not in ('running', 'paused', 'excluded')
       order by interval.data_interval_start desc limit 1
     ) newest on true`,
    [exports.map(({ id }) => id), exports.map(({ retention_days }) => retention_days), now],
  );
  return new Map(rows.map(({ id, ...summary }) => [id, summary]));
}

/** A newest interval that failed says more than a pause: exportd pauses exports that fail. */
export function conditionOf(
  paused: boolean,
  summary: LedgerSummary | undefined,
  lag: LagResponse | null,
): ExportCondition {
  if (summary?.newest_ended === 'failed' || summary?.newest_ended === 'gap') return 'failing';
  if ((lag?.gaps.length ?? 0) > 0) return 'gap';
  if (summary?.has_held) return 'held';
  if (paused) return 'paused';
  // One interval is missing from its end until its run has completed.
  if ((lag?.intervals ?? 0) > 1) return 'behind';
  return summary?.has_unsettled ? 'unsettled' : 'active';
}

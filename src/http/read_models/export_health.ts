import type { Pool } from '../../journal/database.ts';
import { readLags } from './lag.ts';

/** Outcomes of a comparison with the source after which a person or another run has to act. */
const comparisonOutcomes = ['rows_added', 'rows_missing', 'both'] as const;
/** Also `verification`: the newest verification that a person requested has findings. */
export const differences = [...comparisonOutcomes, 'verification'] as const;
export type Difference = (typeof differences)[number];

/** Counts the intervals by export whose newest verification has findings, and that were not exported again since. */
const verificationCounts = `
  select batch_export_id, 'verification', count(*) as intervals from (
    select distinct on (batch_export_id, data_interval_start, data_interval_end) *
    from exportd.verifications where report is not null
    order by batch_export_id, data_interval_start, data_interval_end, created_at desc
  ) newest
  where has_findings and not exists (
    select from exportd.intervals interval
    where (interval.batch_export_id, interval.data_interval_start, interval.data_interval_end)
        = (newest.batch_export_id, newest.data_interval_start, newest.data_interval_end)
      and interval.completed_at > newest.created_at)
  group by 1`;

/** How a live export is doing. */
export interface ExportHealth {
  readonly id: string;
  readonly team_id: number;
  readonly interval: string;
  readonly paused: boolean;
  /** Seconds since the end of the newest interval that is exported or skipped; null if the schedule owes nothing more. */
  readonly freshness_seconds: number | null;
  /** Ended intervals of the schedule without a manifest, and gaps. Null if its schedule cannot be read. */
  readonly missing_intervals: number | null;
  readonly unsettled_intervals: number;
  readonly held_intervals: number;
  /** Intervals whose files differ from the source, by the outcome of the latest comparison or verification. */
  readonly differing_intervals: Readonly<Partial<Record<Difference, number>>>;
  /** When any of its intervals was last compared with the source, in seconds since 1970; null if none was. */
  readonly last_compared_at: number | null;
}

type Row = Omit<ExportHealth, 'missing_intervals'>;

/** Reads the health of all live exports, with one statement for each index that it uses. */
export async function readExportHealth(
  pool: Pool,
  onUnreadable: (id: string, error: unknown) => void,
): Promise<ExportHealth[]> {
  const { rows } = await pool.query<Row>(
    `select export.id, export.team_id, export.interval, export.paused,
       case when not export.paused and coalesce(export.start_at <= now, true) and coalesce(export.end_at > now, true)
         then greatest(0, extract(epoch from
           now - coalesce(decided.until, greatest(export.created_at, export.start_at))))::float8
       end as freshness_seconds,
       unexported.unsettled as unsettled_intervals, unexported.held as held_intervals,
       coalesce(differing.counts, '{}') as differing_intervals,
       extract(epoch from compared.last_compared_at)::float8 as last_compared_at
     from exportd.batch_exports export cross join statement_timestamp() as now
     left join lateral (
       select interval.data_interval_end as until from exportd.intervals interval
       where interval.batch_export_id = export.id
         and (interval.manifest_run_id is not null or interval.run_id is null)
       order by interval.data_interval_start desc limit 1
     ) decided on true
     cross join lateral (
       select count(*) filter (where interval.status = 'unsettled') as unsettled,
         count(*) filter (where interval.status = 'held') as held
       from exportd.intervals interval where interval.batch_export_id = export.id and interval.status <> 'exported'
     ) unexported
     left join lateral (
       select comparison.last_compared_at from exportd.interval_comparisons comparison
       where comparison.batch_export_id = export.id and comparison.last_compared_at is not null
       order by comparison.last_compared_at desc limit 1
     ) compared on true
     left join (
       select batch_export_id, jsonb_object_agg(outcome, intervals) as counts
       from (
         select batch_export_id, outcome, count(*) as intervals from exportd.interval_comparisons
         where outcome in (${comparisonOutcomes.map((outcome) => `'${outcome}'`).join(', ')}) group by 1, 2
         union all ${verificationCounts}
       ) counted group by 1
     ) differing on differing.batch_export_id = export.id
     where not export.deleted`,
  );
  const lags = await readLags(pool, rows, onUnreadable);
  return rows.map((row) => ({ ...row, missing_intervals: lags.get(row.id)?.intervals ?? null }));
}

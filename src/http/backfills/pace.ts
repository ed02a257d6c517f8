import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';

/** SQL: how long the newest runs of an export have taken, in seconds: those of backfills if there are any. */
const pace = `select coalesce(percentile_cont(0.5) within group (order by seconds) filter (where backfill_id is not null),
    percentile_cont(0.5) within group (order by seconds)) as seconds
  from (select backfill_id, extract(epoch from finished_at - created_at)::float8 as seconds
    from exportd.batch_export_runs where batch_export_id = $1 and manifest_key is not null
    order by position desc limit 200) newest`;

/** Reads how long a run of an export takes, in seconds; null before the first one has published. */
export async function readRunSeconds(pool: Pool, batchExportId: string): Promise<number | null> {
  const { rows } = await pool.query<{ readonly seconds: number | null }>(pace, [batchExportId]);
  return rows[0]?.seconds ?? null;
}

/** How long a backfill of so many intervals takes, in seconds; null while the pace is not known. */
export const secondsOfBackfill = (
  intervals: number,
  runSeconds: number | null,
  { EXPORTD_BACKFILL_CONCURRENCY: concurrency }: Pick<Settings, 'EXPORTD_BACKFILL_CONCURRENCY'>,
): number | null => runSeconds && Math.ceil(Math.ceil(intervals / concurrency) * runSeconds);

import { activeRunStatuses } from '../../../domain/run_state.ts';
import type { Pool } from '../../../journal/database.ts';
import { runColumns, type RunRow } from '../runs.ts';

/** An active run, and what its newest events say of its speed. */
export interface ActiveRunRow extends RunRow {
  readonly now: string;
  /** All active runs of the export, also those that are not read. */
  readonly total: number;
  readonly rows_per_second: number | null;
  readonly bytes_per_second: number | null;
  readonly attempts: number;
}

const windowSeconds = 60;
/** Events that are read of each run: more than a minute has. */
const maxEvents = 1_000;
/** An export has few active runs: at most those of its schedule and of its backfills. */
const maxRuns = 50;

const statuses = activeRunStatuses.map((status) => `'${status}'`).join(', ');

/**
 * Reads the active runs of an export, oldest first. Their speed is that of the last minute: a part is recorded before it
 * is sent, with its rows.
 */
export async function readActiveRuns(pool: Pool, batchExportId: string): Promise<ActiveRunRow[]> {
  const { rows } = await pool.query<ActiveRunRow>(
    `select active.*, statement_timestamp() as now,
       round(part.rows / greatest(1, part.seconds))::float8 as rows_per_second,
       round(part.bytes / greatest(1, part.seconds))::float8 as bytes_per_second,
       (select coalesce(sum((range->>'attempt')::int), 0)::int
        from exportd.stream_states, jsonb_array_elements(state->'ranges') range
        where stream_type = 'run' and stream_id = active.id) as attempts
     from (select ${runColumns}, count(*) over ()::int as total from exportd.batch_export_runs
       where batch_export_id = $1 and status in (${statuses}) order by position limit ${maxRuns}) active
     cross join lateral (
       select sum((data->'part'->>'rows')::numeric) filter (where is_part) as rows,
         sum((data->'part'->>'bytes')::numeric) filter (where is_part) as bytes,
         least(${windowSeconds}, extract(epoch from statement_timestamp() - min(recorded_at))) as seconds
       from (
         select data, recorded_at, event_type = 'RunPartPlanned' as is_part from exportd.journal_events
         where stream_type = 'run' and stream_id = active.id order by stream_version desc limit ${maxEvents}) newest
       where recorded_at > statement_timestamp() - make_interval(secs => ${windowSeconds})) part
     order by active.position`,
    [batchExportId],
  );
  return rows;
}

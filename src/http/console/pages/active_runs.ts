import { activeRunStatuses } from '../../../domain/run_state.ts';
import type { Pool } from '../../../journal/database.ts';
import { backfillsPath } from '../../backfills/schema.ts';
import { requireBatchExport } from '../../batch_exports/read_model.ts';
import { readsExports, teamOf } from '../../requests.ts';
import type { ProjectRoutes } from '../../route_context.ts';
import { runColumns, type RunRow, toRunResponse } from '../../runs/read_model.ts';
import { errorResponses } from '../../schemas.ts';
import { activeRunsSchema } from './schema.ts';

/** An active run, and what its newest events say of its speed. */
interface ActiveRunRow extends RunRow {
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
async function readActiveRuns(pool: Pool, batchExportId: string): Promise<ActiveRunRow[]> {
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
         select data, recorded_at, data ? 'part' as is_part from exportd.journal_events
         where stream_type = 'run' and stream_id = active.id order by stream_version desc limit ${maxEvents}) newest
       where recorded_at > statement_timestamp() - make_interval(secs => ${windowSeconds})) part
     order by active.position`,
    [batchExportId],
  );
  return rows;
}

/** Shows how fast the active runs of an export are. */
export const activeRunRoutes: ProjectRoutes = (app, { pool, runLink }) => {
  app.get(
    '/console/batch_exports/:batch_export_id/active_runs',
    {
      ...readsExports,
      schema: {
        hide: true,
        params: backfillsPath,
        response: { 200: activeRunsSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const runs = await readActiveRuns(pool, batch_export_id);
      return {
        now: runs[0]?.now ?? new Date().toISOString(),
        total: runs[0]?.total ?? 0,
        runs: runs.map(({ rows_per_second, bytes_per_second, attempts, ...run }) => ({
          run: toRunResponse(run, runLink),
          rows_per_second,
          bytes_per_second,
          attempts,
        })),
      };
    },
  );
};

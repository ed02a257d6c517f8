import type { Pool } from '../../../journal/database.ts';
import { backfillsPath } from '../../backfills/schema.ts';
import { requireBatchExport } from '../../batch_exports/read_model.ts';
import { readIntervalPage } from '../../intervals/read_model.ts';
import { readsExports, teamOf } from '../../requests.ts';
import type { ProjectRoutes } from '../../route_context.ts';
import { errorResponses } from '../../schemas.ts';
import { timelineQuery, type TimelineResponse, timelineSchema } from './schema.ts';
import { resolveListTimes } from '../../list_times.ts';

/** The entries of a response. A month of hours has 744. */
const maxEntries = 1_000;

/** Reads the newest intervals of an export in a range of time, oldest first, with the time that each landed. */
async function readTimeline(
  pool: Pool,
  batchExportId: string,
  range: { readonly after?: string | undefined; readonly before?: string | undefined },
): Promise<TimelineResponse> {
  const page = await readIntervalPage(pool, batchExportId, {
    ...range,
    limit: maxEntries,
    statuses: undefined,
  });
  const entries = page.intervals.toReversed();
  const landings = await readLandings(pool, batchExportId, {
    start: entries[0]?.data_interval_start,
    end: entries.at(-1)?.data_interval_end,
  });
  return {
    now: landings.now,
    is_complete: page.next === null,
    entries: entries.map((entry) => ({
      data_interval_start: entry.data_interval_start,
      data_interval_end: entry.data_interval_end,
      intervals: entry.intervals,
      status: entry.status,
      reason: entry.reason,
      generation: entry.generation,
      rows: entry.rows,
      bytes: entry.bytes,
      landed_at: landings.times.get(landingKey(entry.data_interval_start, entry.data_interval_end)) ?? null,
    })),
  };
}

const landingKey = (start: string, end: string): string => `${start}/${end}`;

/** When the first scheduled run of each interval completed, and the time of the database. Backfills say nothing about delays. */
async function readLandings(
  pool: Pool,
  batchExportId: string,
  { start, end }: { readonly start: string | undefined; readonly end: string | undefined },
): Promise<{ readonly now: string; readonly times: ReadonlyMap<string, string> }> {
  const { rows } = await pool.query<{
    now: string;
    data_interval_start: string | null;
    data_interval_end: string | null;
    landed_at: string | null;
  }>(
    `select clock.now, landing.* from (select statement_timestamp() as now) clock left join (
       select data_interval_start, data_interval_end, min(finished_at) as landed_at from exportd.batch_export_runs
       where batch_export_id = $1 and data_interval_start >= $2 and data_interval_start < $3 and status = 'Completed'
         and (backfill_id is null or adopted_by_schedule)
       group by data_interval_start, data_interval_end) landing on true`,
    [batchExportId, start ?? null, end ?? null],
  );
  return {
    now: rows[0]?.now ?? '',
    times: new Map(
      rows.flatMap(({ data_interval_start, data_interval_end, landed_at }) =>
        data_interval_start !== null && data_interval_end !== null && landed_at !== null
          ? [[landingKey(data_interval_start, data_interval_end), landed_at] as const]
          : [],
      ),
    ),
  };
}

/** Shows the intervals of an export as a calendar. */
export const timelineRoutes: ProjectRoutes = (app, { pool }) => {
  app.get(
    '/console/batch_exports/:batch_export_id/timeline',
    {
      ...readsExports,
      schema: {
        hide: true,
        params: backfillsPath,
        querystring: timelineQuery,
        response: { 200: timelineSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const range = await resolveListTimes(pool, teamOf(request), request.query);
      return readTimeline(pool, batch_export_id, range);
    },
  );
};

import { ApiError, retryAfter } from '../api_error.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { disconnectSignal, readsExports, teamOf } from '../requests.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { errorResponses } from '../schemas.ts';
import { intervalDetailSchema, intervalPath, rowLocationQuery, rowLocationSchema } from './detail_schema.ts';
import { readIntervalAt, readIntervalDetail } from './interval_detail.ts';
import { locateRow } from './locate_row.ts';

/** What is known of one interval, and which file has a row of it. */
export const intervalDetailRoutes: ProjectRoutes = (app, context) => {
  const { pool, settings } = context;

  app.get(
    '/batch_exports/:batch_export_id/intervals/:start',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve batch export interval',
        description:
          'Everything that exportd knows of one interval: its runs, generations, files and comparisons.',
        params: intervalPath,
        response: { 200: intervalDetailSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id, start } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      return readIntervalDetail(context, batch_export_id, start);
    },
  );

  app.get(
    '/batch_exports/:batch_export_id/intervals/:start/row',
    {
      ...readsExports,
      schema: {
        summary: 'Find an event of an interval',
        description: 'Which file of the current manifest has the event, or why none has.',
        params: intervalPath,
        querystring: rowLocationQuery,
        response: { 200: rowLocationSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id, start } = request.params;
      const { team_id } = await requireBatchExport(pool, teamOf(request), batch_export_id);
      const interval = await readIntervalAt(pool, batch_export_id, start);
      const timeout = AbortSignal.timeout(settings.EXPORTD_DRY_RUN_TIMEOUT);
      const signal = AbortSignal.any([disconnectSignal(reply), timeout]);
      try {
        return await locateRow(context, { batch_export_id, team_id }, interval, request.query.uuid, signal);
      } catch (error) {
        if (timeout.aborted) throw notFoundInTime(settings.EXPORTD_DRY_RUN_TIMEOUT);
        throw error;
      }
    },
  );
};

const notFoundInTime = (timeoutMs: number): ApiError =>
  new ApiError(
    503,
    'source_unreachable',
    `The source did not find the row within ${timeoutMs / 1_000} seconds. Retry later.`,
    retryAfter(5),
  );

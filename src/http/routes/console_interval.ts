import { ApiError } from '../api_error.ts';
import { disconnectSignal } from '../disconnect_signal.ts';
import { requireBatchExport } from '../read_models/batch_exports.ts';
import { readIntervalAt, readIntervalDetail } from '../read_models/console/interval_detail.ts';
import { locateRow } from '../read_models/console/row_location.ts';
import { teamOf, type ProjectRoutes } from '../route_context.ts';
import { errorResponses } from '../schemas/common.ts';
import {
  intervalDetailSchema,
  intervalPath,
  rowLocationQuery,
  rowLocationSchema,
} from '../schemas/console/interval_detail.ts';
import { sourceError } from '../source_error.ts';

const read = { config: { scope: 'batch_export:read' } } as const;

/** What the console shows of an interval. */
export const consoleIntervalRoutes: ProjectRoutes = (app, context) => {
  const { pool, settings } = context;

  app.get(
    '/console/batch_exports/:batch_export_id/intervals/:start',
    {
      ...read,
      schema: {
        hide: true,
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
    '/console/batch_exports/:batch_export_id/intervals/:start/row',
    {
      ...read,
      schema: {
        hide: true,
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
        throw sourceError(error) ?? error;
      }
    },
  );
};

const notFoundInTime = (timeoutMs: number): ApiError =>
  new ApiError(
    503,
    'source_unreachable',
    `The source did not find the row within ${timeoutMs / 1_000} seconds. Retry later.`,
    { headers: { 'retry-after': '5' } },
  );

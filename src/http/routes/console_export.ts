import { resolveListTimes } from '../list_times.ts';
import { offsetPage } from '../paging.ts';
import { readActiveRuns } from '../read_models/console/active_runs.ts';
import { readRunSteps } from '../read_models/console/run_steps.ts';
import { readSettingsHistory } from '../read_models/console/settings_history.ts';
import { readTimeline } from '../read_models/console/timeline.ts';
import { requireBatchExport } from '../read_models/batch_exports.ts';
import { findRun, toRunResponse } from '../read_models/runs.ts';
import { notFound } from '../api_error.ts';
import { teamOf, type ProjectRoutes } from '../route_context.ts';
import { errorResponses, listQuery, pageOf } from '../schemas/common.ts';
import { consoleExportPath } from '../schemas/console/interval_detail.ts';
import { activeRunsSchema, runStepsSchema } from '../schemas/console/run_activity.ts';
import { settingsChangeSchema } from '../schemas/console/settings_history.ts';
import { timelineQuery, timelineSchema } from '../schemas/console/timeline.ts';
import { runPath } from '../schemas/run.ts';

const read = { config: { scope: 'batch_export:read' } } as const;

/** What the console shows of an export, beside the documented resources. */
export const consoleExportRoutes: ProjectRoutes = (app, context) => {
  const { settings, pool, runLink } = context;

  app.get(
    '/console/batch_exports/:batch_export_id/history',
    {
      ...read,
      schema: {
        hide: true,
        params: consoleExportPath,
        querystring: listQuery,
        response: { 200: pageOf(settingsChangeSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const page = await readSettingsHistory(pool, batch_export_id, request.query);
      return offsetPage(request, settings, request.query, page);
    },
  );

  app.get(
    '/console/batch_exports/:batch_export_id/timeline',
    {
      ...read,
      schema: {
        hide: true,
        params: consoleExportPath,
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

  app.get(
    '/console/batch_exports/:batch_export_id/active_runs',
    {
      ...read,
      schema: {
        hide: true,
        params: consoleExportPath,
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

  app.get(
    '/console/batch_exports/:batch_export_id/runs/:id/steps',
    {
      ...read,
      schema: { hide: true, params: runPath, response: { 200: runStepsSchema, ...errorResponses } },
    },
    async (request) => {
      const { batch_export_id, id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const run = await findRun(pool, batch_export_id, id);
      if (!run) throw notFound();
      return { run: toRunResponse(run, runLink), ...(await readRunSteps(pool, id)) };
    },
  );
};

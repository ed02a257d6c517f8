import { resolveListTimes } from '../list_times.ts';
import { withParameters } from '../paging.ts';
import { requireBatchExport } from '../read_models/batch_exports.ts';
import { readIntervalPage } from '../read_models/intervals.ts';
import { parseChoices, teamOf, type ProjectRoutes } from '../route_context.ts';
import { backfillsPath } from '../schemas/backfill.ts';
import { errorResponses, pageOf } from '../schemas/common.ts';
import { intervalSchema, intervalsQuery, intervalStatuses } from '../schemas/interval.ts';

/** List the interval ledger of an export. */
export const intervalRoutes: ProjectRoutes = (app, { settings, pool }) => {
  app.get(
    '/batch_exports/:batch_export_id/intervals',
    {
      config: { scope: 'batch_export:read' },
      schema: {
        summary: 'List batch export intervals',
        description:
          'What exportd knows of each interval: its status, its current manifest, and its last comparison with the ' +
          'source. Intervals without runs are listed as ranges. Newest first.',
        params: backfillsPath,
        querystring: intervalsQuery,
        response: { 200: pageOf(intervalSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const { status, ...query } = await resolveListTimes(pool, teamOf(request), request.query);
      const statuses = parseChoices('status', status, intervalStatuses);
      const page = await readIntervalPage(pool, batch_export_id, { ...query, statuses });
      const urlOf = (cursor: string | null) => cursor && withParameters(request, settings, { cursor });
      return {
        count: page.count,
        next: urlOf(page.next),
        previous: urlOf(page.previous),
        results: page.intervals,
      };
    },
  );
};

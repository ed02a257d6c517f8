import { logLevels } from '../../journal/journal.ts';
import { parseChoices, teamOf, type ProjectRoutes } from '../route_context.ts';
import { resolveListTimes } from '../list_times.ts';
import { offsetPage } from '../paging.ts';
import { requireBatchExport } from '../read_models/batch_exports.ts';
import { listLogLines } from '../read_models/log_lines.ts';
import { batchExportPath } from '../schemas/batch_export.ts';
import { errorResponses, pageOf } from '../schemas/common.ts';
import { logLineSchema, logsQuery } from '../schemas/log_line.ts';

/** Read the log of a batch export. */
export const logRoutes: ProjectRoutes = (app, { pool, settings }) => {
  app.get(
    '/batch_exports/:id/logs',
    {
      config: { scope: 'batch_export:read' },
      schema: {
        summary: 'Retrieve batch export logs',
        params: batchExportPath,
        querystring: logsQuery,
        response: { 200: pageOf(logLineSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { id } = await requireBatchExport(pool, teamOf(request), request.params.id);
      const { level, ...query } = await resolveListTimes(pool, teamOf(request), request.query);
      const levels = parseChoices('level', level, logLevels, (text) => text.toUpperCase());
      return offsetPage(request, settings, query, await listLogLines(pool, id, { ...query, levels }));
    },
  );
};

import { logLevels } from '../../journal/log_lines.ts';
import { chosen, teamOf, type ProjectRoutes } from '../context.ts';
import { offsetPage } from '../paging.ts';
import { requireBatchExport } from '../reading/batch_exports.ts';
import { listLogLines } from '../reading/log_lines.ts';
import { batchExportPath } from '../schemas/batch_export.ts';
import { errorAnswers, pageOf } from '../schemas/common.ts';
import { logLineSchema, logsQuery } from '../schemas/log_line.ts';

/** The log of a batch export. */
export const logRoutes: ProjectRoutes = (app, { pool, settings }) => {
  app.get(
    '/batch_exports/:id/logs',
    {
      config: { scope: 'batch_export:read' },
      schema: {
        summary: 'Retrieve batch export logs',
        params: batchExportPath,
        querystring: logsQuery,
        response: { 200: pageOf(logLineSchema), ...errorAnswers },
      },
    },
    async (request) => {
      const { level, ...query } = request.query;
      const levels = chosen('level', level, logLevels, (text) => text.toUpperCase());
      const { id } = await requireBatchExport(pool, teamOf(request), request.params.id);
      return offsetPage(request, settings, query, await listLogLines(pool, id, { ...query, levels }));
    },
  );
};

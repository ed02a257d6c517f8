import { disconnectSignal } from '../disconnect_signal.ts';
import { estimateExport } from '../previews/estimate_export.ts';
import { previewExport } from '../previews/preview_export.ts';
import { previewedExport } from '../previews/previewed_export.ts';
import { teamOf, type ProjectRoutes } from '../route_context.ts';
import { batchExportPath, updateBody } from '../schemas/batch_export.ts';
import { errorResponses } from '../schemas/common.ts';
import {
  estimateSchema,
  previewSchema,
  sourceCheckQuery,
  sourceReportSchema,
} from '../schemas/console/preview.ts';
import { sourceError } from '../source_error.ts';

/** Who may create exports may see their rows. Reading exports alone shows none. */
const write = { config: { scope: 'batch_export:write' } } as const;
const preview = { 200: previewSchema, ...errorResponses };
const estimate = { 200: estimateSchema, ...errorResponses };

/** Preview what an export of the body would write before it is created or changed. */
export const consolePreviewRoutes: ProjectRoutes = (app, context) => {
  const { pool, source } = context;

  app.get(
    '/console/source/check',
    {
      ...write,
      schema: {
        hide: true,
        querystring: sourceCheckQuery,
        response: { 200: sourceReportSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      try {
        const report = await source.check(teamOf(request), request.query, disconnectSignal(reply));
        return {
          ...report,
          relations: [...report.relations],
          findings: [...report.findings],
          tables: [...report.tables],
          views: report.views.map((view) => ({ ...view, to_choose: [...view.to_choose] })),
        };
      } catch (error) {
        throw sourceError(error) ?? error;
      }
    },
  );

  app.post(
    '/console/batch_exports/preview',
    { ...write, schema: { hide: true, body: updateBody, response: preview } },
    async (request, reply) => {
      const previewed = await previewedExport(pool, teamOf(request), null, request.body);
      return previewExport(context, previewed, disconnectSignal(reply));
    },
  );

  app.post(
    '/console/batch_exports/estimate',
    { ...write, schema: { hide: true, body: updateBody, response: estimate } },
    async (request, reply) => {
      const previewed = await previewedExport(pool, teamOf(request), null, request.body);
      return estimateExport(context, previewed, disconnectSignal(reply));
    },
  );

  app.post(
    '/console/batch_exports/:id/preview',
    { ...write, schema: { hide: true, params: batchExportPath, body: updateBody, response: preview } },
    async (request, reply) => {
      const previewed = await previewedExport(pool, teamOf(request), request.params.id, request.body);
      return previewExport(context, previewed, disconnectSignal(reply));
    },
  );

  app.post(
    '/console/batch_exports/:id/estimate',
    { ...write, schema: { hide: true, params: batchExportPath, body: updateBody, response: estimate } },
    async (request, reply) => {
      const previewed = await previewedExport(pool, teamOf(request), request.params.id, request.body);
      return estimateExport(context, previewed, disconnectSignal(reply));
    },
  );
};

import { batchExportPath, updateBody } from '../batch_exports/schema.ts';
import { disconnectSignal, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { errorResponses } from '../schemas.ts';
import { estimateExport, previewedExport, previewExport } from './previews.ts';
import { estimateSchema, previewSchema } from './schema.ts';

/** The path of a preview: with the id of an export that the body changes, or without one for a new export. */
const newExportPath = batchExportPath.omit({ id: true });

/**
 * Preview what an export of the body would write before it is created or changed. Who may create exports may see their
 * rows; reading exports alone shows none.
 */
export const previewRoutes: ProjectRoutes = (app, context) => {
  const { pool, shares } = context;

  for (const [path, of, params] of [
    ['/batch_exports', 'a new batch export', newExportPath],
    ['/batch_exports/:id', 'an update of a batch export', batchExportPath],
  ] as const) {
    app.post(
      `${path}/preview`,
      {
        ...writesExports,
        schema: {
          summary: `Preview ${of}`,
          description:
            'The first rows that it would write of its newest ended interval, with the names of its files.',
          params,
          body: updateBody,
          response: { 200: previewSchema, ...errorResponses },
        },
      },
      async (request, reply) => {
        const id = 'id' in request.params ? request.params.id : null;
        const signal = disconnectSignal(reply);
        return shares.previews(request, signal, async () => {
          const previewed = await previewedExport(pool, teamOf(request), id, request.body);
          return previewExport(context, previewed, signal);
        });
      },
    );
    app.post(
      `${path}/estimate`,
      {
        ...writesExports,
        schema: {
          summary: `Estimate ${of}`,
          description: 'How many rows, bytes and files an interval has, by the newest ones.',
          params,
          body: updateBody,
          response: { 200: estimateSchema, ...errorResponses },
        },
      },
      async (request, reply) => {
        const id = 'id' in request.params ? request.params.id : null;
        const signal = disconnectSignal(reply);
        return shares.previews(request, signal, async () => {
          const previewed = await previewedExport(pool, teamOf(request), id, request.body);
          return estimateExport(context, previewed, signal);
        });
      },
    );
  }
};

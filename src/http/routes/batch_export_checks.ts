import { z } from 'zod';
import { inTransaction, type Connection } from '../../journal/database.ts';
import { prepareCreation, prepareUpdate, type ChangedField } from '../batch_export_changes.ts';
import { teamOf, type ProjectRoutes, type RouteContext } from '../route_context.ts';
import { batchExportPath, createBody, updateBody } from '../schemas/batch_export.ts';
import { errorResponses } from '../schemas/common.ts';

/** Equal secrets are no change, so a caller learns whether it knows them: it needs the scope to replace them. */
const write = { config: { scope: 'batch_export:write' } } as const;

const checkSchema = z
  .object({
    changes: z
      .array(z.string())
      .describe('The fields that the request would set, such as `destination__config__prefix`.'),
    secrets: z.array(z.string()).describe('Those of them that are secrets, which responses never contain.'),
  })
  .meta({ id: 'BatchExportCheck' });

/** Check what creating or updating a batch export would do. */
export const batchExportCheckRoutes: ProjectRoutes = (app, context) => {
  app.post(
    '/batch_exports/check',
    {
      ...write,
      schema: {
        summary: 'Check a new batch export',
        description: 'Validates the body as creating the export does, and creates nothing.',
        body: createBody,
        response: { 200: checkSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { changed } = await withoutEffect(context, (connection) =>
        prepareCreation(connection, context, teamOf(request), request.body),
      );
      return toCheck(changed);
    },
  );

  app.post(
    '/batch_exports/:id/check',
    {
      ...write,
      schema: {
        summary: 'Check an update of a batch export',
        description:
          'Validates the body as updating the export does, and says what it would change. Changes nothing.',
        params: batchExportPath,
        body: updateBody,
        response: { 200: checkSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { changed } = await withoutEffect(context, (connection) =>
        prepareUpdate(connection, context, teamOf(request), request.params.id, request.body),
      );
      return toCheck(changed);
    },
  );
};

const toCheck = (changed: readonly ChangedField[]): z.infer<typeof checkSchema> => ({
  changes: changed.map(({ attr }) => attr),
  secrets: changed.filter(({ secret }) => secret).map(({ attr }) => attr),
});

/** Rolls a transaction back that has done its work. */
class RolledBack extends Error {
  override readonly name = 'RolledBack';
}

/** Runs `work` in a transaction that is rolled back, and returns its result. */
async function withoutEffect<Result>(
  { pool }: RouteContext,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const done: Result[] = [];
  try {
    await inTransaction(pool, async (connection) => {
      done.push(await work(connection));
      throw new RolledBack('Nothing was to be changed.');
    });
  } catch (error) {
    if (!(error instanceof RolledBack)) throw error;
  }
  const [result] = done;
  if (result === undefined) throw new Error('The transaction ended without a result.');
  return result;
}

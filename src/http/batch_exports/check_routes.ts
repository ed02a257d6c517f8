import * as z from 'zod';
import type { FieldChange } from '../../journal/audit.ts';
import { type Connection, inTransaction } from '../../journal/database.ts';
import { disconnectSignal, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { errorResponses } from '../schemas.ts';
import { consequencesOf, prepareCreation, prepareUpdate } from './changes.ts';
import { batchExportPath, createBody, updateBody } from './schema.ts';

const checkSchema = z
  .object({
    changes: z
      .array(z.string())
      .describe('The fields that the request would set, such as `destination__config__prefix`.'),
    secrets: z.array(z.string()).describe('Those of them that are secrets, which responses never contain.'),
    consequences: z
      .array(z.string())
      .describe(
        'What the request does to intervals, to files that exist and to their readers, a sentence each.',
      ),
  })
  .meta({ id: 'BatchExportCheck' });

/**
 * Check what creating or updating a batch export would do. Equal secrets are no change, so a caller learns whether it
 * knows them: it needs the scope to replace them.
 */
export const batchExportCheckRoutes: ProjectRoutes = (app, context) => {
  const { shares } = context;

  app.post(
    '/batch_exports/check',
    {
      ...writesExports,
      schema: {
        summary: 'Check a new batch export',
        description: 'Validates the body as creating the export does, and creates nothing.',
        body: createBody,
        response: { 200: checkSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { changed } = await shares.checks(request, disconnectSignal(reply), () =>
        withoutEffect(context, (connection) =>
          prepareCreation(connection, context, teamOf(request), request.body),
        ),
      );
      return toCheck(changed, []);
    },
  );

  app.post(
    '/batch_exports/:id/check',
    {
      ...writesExports,
      schema: {
        summary: 'Check an update of a batch export',
        description:
          'Validates the body as updating the export does, and says what it would change. Changes nothing.',
        params: batchExportPath,
        body: updateBody,
        response: { 200: checkSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { body, params } = request;
      const team = teamOf(request);
      const { changed, consequences } = await shares.checks(request, disconnectSignal(reply), () =>
        withoutEffect(context, async (connection) => {
          const prepared = await prepareUpdate(connection, context, team, params.id, body);
          const update = { body, changed: prepared.changed };
          return { ...update, consequences: await consequencesOf(connection, team, params.id, update) };
        }),
      );
      return toCheck(changed, consequences);
    },
  );
};

/** Fields are named as `attr` of errors names them. */
const toCheck = (changed: readonly FieldChange[], consequences: string[]): z.infer<typeof checkSchema> => ({
  consequences,
  changes: changed.map(attrOfChange),
  secrets: changed.filter(({ secret }) => secret).map(attrOfChange),
});

const attrOfChange = ({ field }: FieldChange): string => field.replaceAll('.', '__');

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

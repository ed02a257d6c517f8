import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { testSteps, type TestStep } from '../../destination/bucket_test.ts';
import { rejectSelectionForModel, selectionOf } from '../../destination/config.ts';
import {
  readStoredConfig,
  mergeSealed,
  sealConfig,
  type SealedConfig,
} from '../../destination/config_versions.ts';
import {
  destinationTestJob,
  type DestinationTestParameters,
} from '../../destination/destination_test_job.ts';
import type { Model } from '../../domain/batch_export.ts';
import type { FieldChange } from '../../journal/audit.ts';
import { type Connection, inTransaction } from '../../journal/database.ts';
import { createMaintenancePolicy } from '../../decisions/policies.ts';
import { cleanUpTimeOf, readRemovalTime } from '../../decisions/remove_secrets.ts';
import { answerWithJob, type JobOperation, testFailures } from '../jobs/answer_job.ts';
import { type JobResponse, jobSchema } from '../jobs/schema.ts';
import { requestBackfill } from '../backfills/request_backfill.ts';
import { dryRunSchema } from '../backfills/schema.ts';
import { offsetPage, projectUrl, unreadable } from '../paging.ts';
import { acceptedDetail, submitCommand } from '../command_service.ts';
import { type ProjectRoutes, type RouteContext } from '../route_context.ts';
import { readsExports, sendEmpty, teamOf, writesExports, disconnectSignal } from '../requests.ts';
import { stillStoppingDetail } from '../cancelled_runs.ts';
import {
  acceptedCreation,
  commandResponses,
  errorResponses,
  listQuery,
  noContent,
  pageOf,
} from '../schemas.ts';
import {
  configStoreOf,
  consequencesOf,
  defaultDefinition,
  prepareCreation,
  prepareUpdate,
  rejectTypeChange,
} from './changes.ts';
import {
  listBatchExports,
  readExplanation,
  requireBatchExport,
  toBatchExportResponses,
  toUtc,
} from './read_model.ts';
import { requireAssumableRole } from './role_check.ts';
import {
  backfillBody,
  batchExportPath,
  type BatchExportResponse,
  batchExportSchema,
  type CreateBody,
  createBody,
  destinationTestSchema,
  newDestinationTestBody,
  newTestStepBody,
  replaceBody,
  testStepBody,
  testStepSchema,
  testStepsQuery,
  testStepsSchema,
  unpauseBody,
  type UpdateBody,
  updateBody,
  whySchema,
} from './schema.ts';

/** When the secrets of a deleted export are removed at the latest, if its clean-up still needs them. */
const secretsUntil = 'X-Exportd-Secrets-Until';

/** The current state of an export. @throws ApiError 404, 500 when this version cannot read it */
async function readResponse(context: RouteContext, teamId: number, id: string): Promise<BatchExportResponse> {
  const row = await requireBatchExport(context.pool, teamId, id);
  const [response] = await toBatchExportResponses(context, [row]);
  if (response) return response;
  // Either it was deleted meanwhile, or it cannot be read.
  await requireBatchExport(context.pool, teamId, id);
  throw unreadable('batch export', id);
}

/** Create, list, retrieve, update and delete batch exports. */
export const batchExportRoutes: ProjectRoutes = (app, context) => {
  const { settings, pool } = context;
  const cleanUpMs = cleanUpTimeOf(createMaintenancePolicy(settings));

  app.get(
    '/batch_exports',
    {
      ...readsExports,
      schema: {
        summary: 'List batch exports',
        querystring: listQuery,
        response: { 200: pageOf(batchExportSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { count, rows } = await listBatchExports(pool, teamOf(request), request.query);
      const results = await toBatchExportResponses(context, rows);
      return offsetPage(request, settings, request.query, { count, results, read: rows.length });
    },
  );

  app.post(
    '/batch_exports',
    {
      ...writesExports,
      schema: {
        summary: 'Create batch export',
        body: createBody,
        response: { 201: batchExportSchema, ...commandResponses, 202: acceptedCreation },
      },
    },
    async (request, reply) => {
      const team = teamOf(request);
      const { type, config = {} } = request.body.destination;
      if (typeof config?.role_arn === 'string') {
        const store = await configStoreOf(pool, context, team);
        const owner = randomUUID();
        const sealed = sealConfig(store, owner, { destination_type: type, config });
        await requireAssumableRole(context, request, reply, owner, sealed);
      }
      const submitted = await submitCommand(context, request, 'create', async (connection) => {
        const prepared = await prepareCreation(connection, context, team, request.body);
        request.changedFields = prepared.changed;
        return prepared;
      });
      const id = submitted.batch_export_id;
      reply.header('location', projectUrl(request, settings, `/batch_exports/${id}/`));
      if (!submitted.decided) return reply.code(202).send({ id, ...acceptedDetail });
      return reply.code(201).send(await readResponse(context, teamOf(request), id));
    },
  );

  app.get(
    '/batch_exports/:id',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve batch export',
        params: batchExportPath,
        response: { 200: batchExportSchema, ...errorResponses },
      },
    },
    (request) => readResponse(context, teamOf(request), request.params.id),
  );

  app.get(
    '/batch_exports/:id/why',
    {
      ...readsExports,
      schema: {
        summary: 'Explain the condition of a batch export',
        description:
          'The condition with a change of the export that may have caused it, and how many exports share the bucket.',
        params: batchExportPath,
        response: { 200: whySchema, ...errorResponses },
      },
    },
    async (request) => {
      const team = teamOf(request);
      const row = await requireBatchExport(pool, team, request.params.id);
      const { condition } = await readResponse(context, team, request.params.id);
      return readExplanation(pool, row, condition);
    },
  );

  /** Submits an update. @returns whether it has been decided */
  const update = async (
    request: FastifyRequest,
    reply: FastifyReply,
    { id, body }: { readonly id: string; readonly body: UpdateBody },
  ): Promise<boolean> => {
    const team = teamOf(request);
    const { destination } = body;
    if (destination?.config) {
      const current = await requireBatchExport(pool, team, id);
      rejectTypeChange(current, destination.type);
      const base = await readStoredConfig(pool, id, current.config_version);
      const role = 'role_arn' in destination.config ? destination.config.role_arn : base.config.role_arn;
      if (typeof role === 'string') {
        const store = await configStoreOf(pool, context, team);
        const sealed = mergeSealed(store, id, base, destination.config);
        const isNew = sealed.config.role_arn !== base.config.role_arn || Object.keys(base.secrets).length > 0;
        if (isNew) await requireAssumableRole(context, request, reply, id, sealed);
      }
    }
    const submitted = await submitCommand(context, request, 'update', async (connection) => {
      const prepared = await prepareUpdate(connection, context, team, id, body);
      request.changedFields = prepared.changed;
      return prepared;
    });
    return submitted.decided;
  };
  const updated = { params: batchExportPath, response: { 200: batchExportSchema, ...commandResponses } };

  app.patch(
    '/batch_exports/:id',
    { ...writesExports, schema: { summary: 'Update batch export', ...updated, body: updateBody } },
    async (request, reply) => {
      const { body, params } = request;
      if (!(await update(request, reply, { id: params.id, body })))
        return reply.code(202).send(acceptedDetail);
      return reply.code(200).send(await readResponse(context, teamOf(request), params.id));
    },
  );

  app.put(
    '/batch_exports/:id',
    {
      ...writesExports,
      schema: {
        summary: 'Replace batch export',
        description:
          'As an update, for which `name`, `interval` and `destination` are required. Other fields that are omitted keep their values, secrets too.',
        ...updated,
        body: replaceBody,
      },
    },
    async (request, reply) => {
      const { body, params } = request;
      if (!(await update(request, reply, { id: params.id, body })))
        return reply.code(202).send(acceptedDetail);
      return reply.code(200).send(await readResponse(context, teamOf(request), params.id));
    },
  );

  app.delete(
    '/batch_exports/:id',
    {
      ...writesExports,
      schema: {
        summary: 'Delete batch export',
        description: `Cancels its backfills and runs. Exported files stay in the bucket. Its secrets are removed at once, unless unpublished objects are left to delete: the header \`${secretsUntil}\` is then the time by which they are removed.`,
        params: batchExportPath,
        response: { 204: noContent, ...commandResponses },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const submitted = await submitCommand(context, request, 'delete', async (connection) => {
        await requireBatchExport(connection, teamOf(request), id);
        return { batch_export_id: id, body: {} };
      });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      const removedBy = await readRemovalTime(pool, id, cleanUpMs);
      if (removedBy) reply.header(secretsUntil, removedBy);
      if (submitted.stoppingRuns.length > 0)
        return reply
          .code(202)
          .send(stillStoppingDetail('The batch export is deleted', submitted.stoppingRuns, settings));
      return reply.code(204).send();
    },
  );
};

const responses = { 200: noContent, ...commandResponses };

/** Pause, unpause and backfill a batch export. */
export const batchExportActionRoutes: ProjectRoutes = (app, context) => {
  const { settings } = context;
  const schema = { params: batchExportPath, response: responses };

  app.post(
    '/batch_exports/:id/pause',
    { ...writesExports, schema: { summary: 'Pause batch export', ...schema, body: updateBody } },
    async (request, reply) => {
      const { last_paused_at } = request.body;
      const submitted = await submitCommand(context, request, 'pause', async (connection) => {
        const { id } = await requireBatchExport(connection, teamOf(request), request.params.id);
        return {
          batch_export_id: id,
          body: last_paused_at ? { last_paused_at: toUtc(last_paused_at) } : {},
        };
      });
      return submitted.decided ? sendEmpty(reply) : reply.code(202).send(acceptedDetail);
    },
  );

  app.post(
    '/batch_exports/:id/unpause',
    { ...writesExports, schema: { summary: 'Unpause batch export', ...schema, body: unpauseBody } },
    async (request, reply) => {
      const { backfill } = request.body;
      const submitted = await submitCommand(context, request, 'unpause', async (connection) => {
        const { id } = await requireBatchExport(connection, teamOf(request), request.params.id);
        return { batch_export_id: id, body: backfill === undefined ? {} : { backfill } };
      });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      const { backfill_id } = submitted.outcome;
      const path = `/batch_exports/${request.params.id}/backfills/${backfill_id ?? ''}/`;
      return sendEmpty(reply, backfill_id && projectUrl(request, settings, path));
    },
  );

  app.post(
    '/batch_exports/:id/backfill',
    {
      ...writesExports,
      schema: {
        summary: 'Backfill batch export',
        description:
          'Exports the whole intervals that overlap the range; `Location` is the URL of the backfill. With `dry_run: true`, returns a preview instead.',
        ...schema,
        response: { ...responses, 200: dryRunSchema.optional() },
        body: backfillBody,
      },
    },
    async (request, reply) => {
      const requested = await requestBackfill(context, request, request.params.id, request.body);
      if (requested.kind === 'preview') return reply.code(200).send(requested.preview);
      if (requested.kind === 'pending') return reply.code(202).send(acceptedDetail);
      return sendEmpty(reply, requested.url);
    },
  );
};

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

const tested = { 202: jobSchema, ...errorResponses };
const response = { 200: destinationTestSchema, ...tested };
const stepResponse = { 200: testStepSchema, ...tested };

type DestinationTest<Response extends object> = JobOperation<
  DestinationTestParameters,
  { readonly steps: readonly TestStep[] },
  Response
>;

const wholeTest: DestinationTest<{ steps: TestStep[] }> = {
  kind: destinationTestJob,
  access: writesExports,
  toResponse: ({ steps }) => ({ steps: [...steps] }),
};

const stepOfTest: DestinationTest<TestStep> = {
  ...wholeTest,
  toResponse: ({ steps }, { parameters: { step = 0 } }) => {
    const found = steps[step];
    if (!found) throw new RangeError(`A test has no step ${step}.`);
    return found;
  },
};

export const destinationTest: DestinationTest<{ steps: TestStep[] } | TestStep> = {
  ...wholeTest,
  toResponse: (result, job, pool) =>
    (job.parameters.step === undefined ? wholeTest : stepOfTest).toResponse(result, job, pool),
};

const checkSelection = (sealed: SealedConfig, model: Model): void => {
  rejectSelectionForModel(selectionOf(sealed.config), model);
};

/** What a request tests. */
interface DestinationToTest {
  /** The export for which the secrets are sealed. */
  readonly owner: string;
  readonly sealed: SealedConfig;
  /** The index of the step that is wanted; all without it. */
  readonly step?: number;
}

/** @throws ApiError 429, 503 */
async function testDestination<Response extends object>(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  operation: DestinationTest<Response>,
  { owner, sealed, step }: DestinationToTest,
): Promise<Response | JobResponse> {
  const signal = disconnectSignal(reply);
  const { secrets, ...config } = sealed;
  const parameters = { ...config, ...(step !== undefined && { step }) };
  return context.shares.tests(request, signal, () =>
    answerWithJob(
      context,
      { request, reply, signal },
      operation,
      { target: owner, parameters, secrets },
      testFailures('Nothing was tested.', 'No worker has tested the destination in time.'),
    ),
  );
}

/** Test a destination step by step before an export is created or changed. */
export const destinationTestRoutes: ProjectRoutes = (app, context) => {
  const { pool } = context;

  /** @throws CommandRejected when the destination of a new export is invalid */
  const newDestination = async (
    team: number,
    { destination, model }: Pick<CreateBody, 'destination' | 'model'>,
  ): Promise<DestinationToTest> => {
    const owner = randomUUID();
    const { type, config } = destination;
    const store = await configStoreOf(pool, context, team);
    const sealed = sealConfig(store, owner, { destination_type: type, config: config ?? {} });
    checkSelection(sealed, model ?? defaultDefinition.model);
    return { owner, sealed };
  };

  /** @throws ApiError 404, CommandRejected when the changed destination is invalid */
  const changedDestination = async (
    team: number,
    id: string,
    { destination, model }: Pick<UpdateBody, 'destination' | 'model'>,
  ): Promise<DestinationToTest> => {
    const current = await requireBatchExport(pool, team, id);
    rejectTypeChange(current, destination?.type);
    const base = await readStoredConfig(pool, id, current.config_version);
    const store = await configStoreOf(pool, context, team);
    const sealed = mergeSealed(store, id, base, destination?.config ?? {});
    checkSelection(sealed, model ?? current.model);
    return { owner: id, sealed };
  };

  app.get(
    '/batch_exports/test',
    {
      ...readsExports,
      schema: {
        summary: 'List steps of the test of a destination',
        querystring: testStepsQuery,
        response: { 200: testStepsSchema, ...errorResponses },
      },
    },
    () => ({ steps: testSteps.map((step) => ({ ...step, result: null })) }),
  );

  app.post(
    '/batch_exports/test',
    {
      ...destinationTest.access,
      schema: {
        summary: 'Test a destination',
        description: 'Writes and deletes a small object below the prefix. The config is not saved.',
        body: newDestinationTestBody,
        response,
      },
    },
    async (request, reply) =>
      testDestination(
        context,
        request,
        reply,
        wholeTest,
        await newDestination(teamOf(request), request.body),
      ),
  );

  app.post(
    '/batch_exports/run_test_step_new',
    {
      ...destinationTest.access,
      schema: {
        summary: 'Run a step of the test of a destination',
        description: 'One step, with those before it, and its result alone.',
        body: newTestStepBody,
        response: stepResponse,
      },
    },
    async (request, reply) => {
      const { body } = request;
      const given = await newDestination(teamOf(request), body);
      return testDestination(context, request, reply, stepOfTest, { ...given, step: body.step });
    },
  );

  app.post(
    '/batch_exports/:id/test',
    {
      ...destinationTest.access,
      schema: {
        summary: 'Test the destination of a batch export',
        description:
          'Tests the stored config including its secrets, with the changes of the body applied. The changes are not saved.',
        params: batchExportPath,
        body: updateBody,
        response,
      },
    },
    async (request, reply) => {
      const { body, params } = request;
      const changed = await changedDestination(teamOf(request), params.id, body);
      return testDestination(context, request, reply, wholeTest, changed);
    },
  );

  app.post(
    '/batch_exports/:id/run_test_step',
    {
      ...destinationTest.access,
      schema: {
        summary: 'Run a step of the test of the destination of a batch export',
        description:
          'One step, with those before it, and its result alone. The config is as in the whole test.',
        params: batchExportPath,
        body: testStepBody,
        response: stepResponse,
      },
    },
    async (request, reply) => {
      const { body, params } = request;
      const changed = await changedDestination(teamOf(request), params.id, body);
      return testDestination(context, request, reply, stepOfTest, { ...changed, step: body.step });
    },
  );
};

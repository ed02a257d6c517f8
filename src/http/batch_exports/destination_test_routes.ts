import type { FastifyReply, FastifyRequest } from 'fastify';
import { randomUUID } from 'node:crypto';
import { type TestStep, testSteps } from '../../destination/bucket_test.ts';
import { readStoredConfig } from '../../destination/config_versions.ts';
import {
  destinationTestJob,
  type DestinationTestParameters,
} from '../../destination/destination_test_job.ts';
import { mergeSealed, sealConfig, type SealedConfig } from '../../destination/sealed_config.ts';
import { rejectSelectionForModel, selectionOf } from '../../destination/selection_config.ts';
import type { Model } from '../../domain/batch_export.ts';
import { answerWithJob, type JobOperation, testFailures } from '../jobs/answer_job.ts';
import { type JobResponse, jobSchema } from '../jobs/schema.ts';
import { disconnectSignal, readsExports, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { errorResponses } from '../schemas.ts';
import { configStoreOf, defaultDefinition, rejectTypeChange } from './changes.ts';
import { requireBatchExport } from './read_model.ts';
import {
  batchExportPath,
  type CreateBody,
  destinationTestSchema,
  newDestinationTestBody,
  newTestStepBody,
  testStepBody,
  testStepSchema,
  testStepsQuery,
  testStepsSchema,
  type UpdateBody,
  updateBody,
} from './schema.ts';

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

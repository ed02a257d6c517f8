import { randomUUID } from 'node:crypto';
import { readStoredConfig } from '../../destination/config_versions.ts';
import { rejectSelectionForModel, selectionOf } from '../../destination/config.ts';
import { mergeSealed, sealConfig, type SealedConfig } from '../../destination/sealed_config.ts';
import { teamOf, type ProjectRoutes } from '../route_context.ts';
import { defaultDefinition } from '../batch_export_definition.ts';
import { configStoreOf, rejectTypeChange } from '../destination_config.ts';
import { testDestination } from '../test_destination.ts';
import { requireBatchExport } from '../read_models/batch_exports.ts';
import { batchExportPath } from '../schemas/batch_export.ts';
import { errorResponses } from '../schemas/common.ts';
import {
  newDestinationTestBody,
  destinationTestBody,
  destinationTestSchema,
} from '../schemas/destination_test.ts';
import type { Model } from '../../domain/batch_export.ts';

const write = { config: { scope: 'batch_export:write' } } as const;
const response = { 200: destinationTestSchema, ...errorResponses };

const checkSelection = (sealed: SealedConfig, model: Model): void => {
  rejectSelectionForModel(selectionOf(sealed.config), model);
};

/** Test a destination step by step before an export is created or changed. */
export const destinationTestRoutes: ProjectRoutes = (app, context) => {
  app.post(
    '/batch_exports/test',
    {
      ...write,
      schema: {
        summary: 'Test a destination',
        description: 'Writes and deletes a small object below the prefix. The config is not saved.',
        body: newDestinationTestBody,
        response,
      },
    },
    async (request) => {
      const { body } = request;
      const owner = randomUUID();
      const { type, config } = body.destination;
      const store = await configStoreOf(context.pool, context, teamOf(request));
      const sealed = sealConfig(store, owner, { destination_type: type, config: config ?? {} });
      checkSelection(sealed, body.model ?? defaultDefinition.model);
      return { steps: [...(await testDestination(context, owner, sealed))] };
    },
  );

  app.post(
    '/batch_exports/:id/test',
    {
      ...write,
      schema: {
        summary: 'Test the destination of a batch export',
        description:
          'Tests the stored config including its secrets, with the changes of the body applied. The changes are not saved.',
        params: batchExportPath,
        body: destinationTestBody,
        response,
      },
    },
    async (request) => {
      const { id } = request.params;
      const { destination, model } = request.body;
      const current = await requireBatchExport(context.pool, teamOf(request), id);
      rejectTypeChange(current, destination?.type);
      const base = await readStoredConfig(context.pool, id, current.config_version);
      const store = await configStoreOf(context.pool, context, teamOf(request));
      const sealed = mergeSealed(store, id, base, destination?.config ?? {});
      checkSelection(sealed, model ?? current.model);
      return { steps: [...(await testDestination(context, id, sealed))] };
    },
  );
};

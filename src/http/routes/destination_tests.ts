import { randomUUID } from 'node:crypto';
import { readStoredConfig } from '../../destination/config_versions.ts';
import { refuseInvalidPatterns } from '../../destination/filter_patterns.ts';
import { destinationTypeOf } from '../../destination/registry.ts';
import { refuseSelectionForModel } from '../../destination/row_selection_members.ts';
import { mergeSealed, sealConfig, type SealedConfig } from '../../destination/sealed_config.ts';
import { teamOf, type ProjectRoutes } from '../context.ts';
import { defaultDefinition } from '../definition.ts';
import { refuseTypeChange } from '../destination_config.ts';
import { testDestination } from '../destination_test.ts';
import { requireBatchExport } from '../reading/batch_exports.ts';
import { batchExportPath } from '../schemas/batch_export.ts';
import { errorAnswers } from '../schemas/common.ts';
import { newTestBody, testBody, testSchema } from '../schemas/destination_test.ts';
import type { Model } from '../../domain/batch_export.ts';
import type { Pool } from '../../journal/database.ts';

const write = { config: { scope: 'batch_export:write' } } as const;
const response = { 200: testSchema, ...errorAnswers };

async function checkSelection(pool: Pool, sealed: SealedConfig, model: Model): Promise<void> {
  refuseSelectionForModel(destinationTypeOf(sealed.destination_type).selectionOf(sealed.config), model);
  await refuseInvalidPatterns(pool, sealed);
}

/** Try a destination step by step, before an export is created or changed. */
export const destinationTestRoutes: ProjectRoutes = (app, context) => {
  app.post(
    '/batch_exports/test',
    {
      ...write,
      schema: {
        summary: 'Test a destination',
        description: 'Writes a small object under the prefix and removes it. Nothing is stored.',
        body: newTestBody,
        response,
      },
    },
    async ({ body }) => {
      const owner = randomUUID();
      const { type, config } = body.destination;
      const sealed = sealConfig(context, owner, { destination_type: type, config: config ?? {} });
      await checkSelection(context.pool, sealed, body.model ?? defaultDefinition.model);
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
          'Tests the stored config, secrets included, or what the given members would make of it. Nothing is stored.',
        params: batchExportPath,
        body: testBody,
        response,
      },
    },
    async (request) => {
      const { id } = request.params;
      const { destination, model } = request.body;
      const current = await requireBatchExport(context.pool, teamOf(request), id);
      refuseTypeChange(current, destination?.type);
      const base = await readStoredConfig(context.pool, id, current.config_version);
      const sealed = mergeSealed(context, id, base, destination?.config ?? {});
      await checkSelection(context.pool, sealed, model ?? current.model);
      return { steps: [...(await testDestination(context, id, sealed))] };
    },
  );
};

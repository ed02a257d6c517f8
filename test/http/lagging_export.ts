import { randomUUID } from 'node:crypto';
import type { BatchExportDefinition } from '../../src/domain/batch_export.ts';
import { appendLaggingExport } from '../decisions/lagging_export.ts';
import { definition } from '../decisions/commander.ts';
import type { ApiHarness } from './api_harness.ts';

/** Creates an export, every minute by default, whose schedule has handled nothing since `since`. Returns its id. */
export async function createLaggingExport(
  api: ApiHarness,
  since: Date,
  more: Partial<BatchExportDefinition> & { readonly paused?: boolean } = {},
): Promise<string> {
  const { paused = false, ...fields } = more;
  const template = await api.createExport({ paused: true });
  const id = randomUUID();
  await api.database.pool.query(
    `insert into exportd.destination_configs
     select (jsonb_populate_record(stored, jsonb_build_object('batch_export_id', $2::uuid))).*
     from exportd.destination_configs stored where batch_export_id = $1`,
    [template, id],
  );
  // It writes the same keys as the new export.
  await api.call('DELETE', `batch_exports/${template}`);
  await appendLaggingExport(api.journal, id, {
    team_id: api.projectId,
    definition: { ...definition, ...fields },
    scheduled_until: since.toISOString(),
    paused,
  });
  return id;
}

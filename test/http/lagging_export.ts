import { randomUUID } from 'node:crypto';
import type { BatchExportDefinition } from '../../src/domain/batch_export.ts';
import { appendLaggingExport } from '../decisions/lagging_export.ts';
import { definition } from '../decisions/commander.ts';
import type { ApiHarness } from './api_harness.ts';

/** Makes an export, of every minute unless more is said, whose schedule has decided nothing since. Answers its id. */
export async function createLaggingExport(
  api: ApiHarness,
  since: Date,
  more: Partial<BatchExportDefinition> & { readonly paused?: boolean } = {},
): Promise<string> {
  const { paused = false, ...members } = more;
  const like = await api.createExport({ paused: true });
  const id = randomUUID();
  await api.database.pool.query(
    `insert into exportd.destination_configs
     select (jsonb_populate_record(stored, jsonb_build_object('batch_export_id', $2::uuid))).*
     from exportd.destination_configs stored where batch_export_id = $1`,
    [like, id],
  );
  // It would write the same keys.
  await api.call('DELETE', `batch_exports/${like}`);
  await appendLaggingExport(api.journal, id, {
    team_id: api.projectId,
    definition: { ...(definition as BatchExportDefinition), ...members },
    scheduled_until: since.toISOString(),
    paused,
  });
  return id;
}

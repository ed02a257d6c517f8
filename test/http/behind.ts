import { randomUUID } from 'node:crypto';
import type { BatchExportDefinition } from '../../src/domain/batch_export.ts';
import { appendExportBehind } from '../decisions/behind.ts';
import { definition } from '../decisions/commander.ts';
import type { Facade } from './facade.ts';

/** Makes an export, of every minute unless more is said, whose schedule has decided nothing since. Answers its id. */
export async function createExportBehind(
  facade: Facade,
  since: Date,
  more: Partial<BatchExportDefinition> & { readonly paused?: boolean } = {},
): Promise<string> {
  const { paused = false, ...members } = more;
  const like = await facade.createExport({ paused: true });
  const id = randomUUID();
  await facade.database.pool.query(
    `insert into exportd.destination_configs
     select (jsonb_populate_record(stored, jsonb_build_object('batch_export_id', $2::uuid))).*
     from exportd.destination_configs stored where batch_export_id = $1`,
    [like, id],
  );
  // It would write the same keys.
  await facade.call('DELETE', `batch_exports/${like}`);
  await appendExportBehind(facade.journal, id, {
    team_id: facade.projectId,
    definition: { ...(definition as BatchExportDefinition), ...members },
    scheduled_until: since.toISOString(),
    paused,
  });
  return id;
}

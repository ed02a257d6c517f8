import { randomUUID } from 'node:crypto';
import { batchExportDecider, type BatchExportDefinition } from '../../src/domain/batch_export.ts';
import type { Facade } from './facade.ts';

const minuteMs = 60_000;

/** The whole minute so many minutes before the one that it is now; ISO 8601. */
export const minuteAgo = (minutes: number): string =>
  new Date((Math.floor(Date.now() / minuteMs) - minutes) * minuteMs).toISOString();

/** Makes an export of every minute whose schedule has decided nothing for so many minutes. Answers its id. */
export async function createExportBehind(
  facade: Facade,
  minutes: number,
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
  const definition: BatchExportDefinition = {
    name: 'Behind',
    model: 'events',
    destination_type: 'S3',
    config_version: 1,
    interval: 'every 1 minutes',
    timezone: 'UTC',
    offset_hour: 0,
    offset_day: 0,
    start_at: null,
    end_at: null,
    dialect_query: null,
    ...members,
  };
  await facade.journal.transaction(async (transaction) => {
    const stream = await transaction.lock(batchExportDecider, id);
    const data = { team_id: facade.projectId, definition, scheduled_until: minuteAgo(minutes), paused };
    await stream.append('behind', [{ type: 'BatchExportCreated', data }]);
  });
  return id;
}

import { randomUUID } from 'node:crypto';
import { createRun } from '../../decisions/create_run.ts';
import { batchExportDecider, type BatchExportDefinition } from '../../domain/batch_export.ts';
import { intervalContaining } from '../../domain/intervals.ts';
import type { Journal } from '../../journal/journal.ts';
import { forEachConcurrently } from '../../temporal/concurrency.ts';

const definition: BatchExportDefinition = {
  name: 'Every hour',
  model: 'events',
  destination_type: 'S3',
  config_version: 1,
  interval: 'hour',
  timezone: 'UTC',
  offset_hour: 0,
  offset_day: 0,
  start_at: null,
  end_at: null,
  dialect_query: null,
  retention_days: null,
};

/** Appends exports to the journal that wait for the end of the current hour; the first `runs` of them have an active run. */
export async function createExports(
  journal: Journal,
  request: { readonly teamId: number; readonly exports: number; readonly runs: number; readonly now: Date },
): Promise<void> {
  const hour = intervalContaining([{ ...definition, effective_from: null }], request.now);
  const start = new Date(Date.parse(hour.start) - 3_600_000).toISOString();
  const indexes = Array.from({ length: request.exports }, (_, index) => index);
  await forEachConcurrently(indexes, 8, async (index) => {
    const id = randomUUID();
    await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, id);
      const data = { team_id: request.teamId, definition, scheduled_until: hour.start, paused: false };
      await stream.append('created', [{ type: 'BatchExportCreated', data }]);
      const state = stream.state();
      if (index >= request.runs || state.status !== 'live') return;
      await createRun(transaction, state, {
        id: randomUUID(),
        batch_export_id: id,
        interval: { start, end: hour.start },
        backfill_id: null,
        retry_number: 0,
        allow_shrink: false,
      });
    });
  });
}

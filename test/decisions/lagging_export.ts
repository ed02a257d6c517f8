import { batchExportDecider, type BatchExportEvent } from '../../src/domain/batch_export.ts';
import { intervalContaining } from '../../src/domain/intervals.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { definition, minutesAgo } from './commander.ts';

/** Creates an export in the journal whose schedule has decided nothing since `scheduled_until`. */
export async function appendLaggingExport(
  journal: Journal,
  id: string,
  data: Extract<BatchExportEvent, { type: 'BatchExportCreated' }>['data'],
): Promise<void> {
  await journal.transaction(async (transaction) => {
    const stream = await transaction.lock(batchExportDecider, id);
    await stream.append('lagging', [{ type: 'BatchExportCreated', data }]);
  });
}

/** Creates a paused export whose schedule lags a number of minutes, which are due as soon as it is unpaused. */
export async function createLaggingExport(
  journal: Journal,
  batchExportId: string,
  minutes: number,
  teamId = 1,
): Promise<void> {
  const revisions = [{ ...definition, effective_from: null }];
  const { start } = intervalContaining(revisions, new Date(minutesAgo(minutes + 1)));
  await appendLaggingExport(journal, batchExportId, {
    team_id: teamId,
    definition,
    scheduled_until: start,
    paused: true,
  });
}

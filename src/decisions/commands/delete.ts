import { backfillDecider, decideBackfillControl } from '../../domain/backfill.ts';
import { decideDelete } from '../../domain/batch_export.ts';
import { endComparisons } from '../comparisons.ts';
import { cleanUpTimeOf, removeSecrets } from '../remove_secrets.ts';
import { cancelRuns } from '../cancel_runs.ts';
import { type CommandContext, type CommandEffect, createEffect } from './command_context.ts';

/**
 * Deletes the export, cancels its backfills and active runs, and removes its secrets unless objects are left to delete.
 * Published objects stay in the bucket.
 */
export async function applyDelete(context: CommandContext): Promise<CommandEffect> {
  const { transaction, batchExport, policies, cause } = context;
  const events = decideDelete(batchExport.state());
  await batchExport.append(cause, events);
  if (events.length === 0) return createEffect(false);
  const { rows } = await transaction.connection.query<{ id: string }>(
    'select id from exportd.backfills where batch_export_id = $1 and finished_at is null order by id',
    [batchExport.id],
  );
  const reason = 'The batch export was deleted.';
  for (const { id } of rows) {
    const backfill = await transaction.lock(backfillDecider, id);
    await backfill.append(cause, decideBackfillControl(backfill.state(), 'cancel', reason));
  }
  const cancelled = await cancelRuns(transaction, batchExport.id, 'all', { cause, reason });
  await endComparisons(transaction.connection, batchExport.id);
  await removeSecrets(transaction.connection, {
    batchExportId: batchExport.id,
    cleanUpMs: cleanUpTimeOf(policies.maintenance),
  });
  return createEffect(true, { wake_backfills: rows.map(({ id }) => id), cancel_runs: cancelled });
}

import { backfillDecider, decideBackfillControl } from '../../domain/backfill.ts';
import { requireLive } from '../../domain/batch_export.ts';
import { CommandRejected } from '../../domain/errors.ts';
import { endRepairs } from '../repairs.ts';
import { cancelUnwantedRetries } from '../retries.ts';
import { cancelRuns } from '../cancel_runs.ts';
import { type CommandContext, type CommandEffect, createEffect } from './command_context.ts';

/**
 * Pauses, unpauses or cancels a backfill. Cancelling also cancels its active runs and automatic retries, unless the
 * schedule or another backfill wants them too: the last of them to be cancelled ends them.
 */
export async function applyBackfillControl(
  context: CommandContext,
  body: { backfill_id: string },
  command: 'pause' | 'unpause' | 'cancel',
): Promise<CommandEffect> {
  const { transaction, batchExport, cause } = context;
  requireLive(batchExport.state());
  const { rows } = await transaction.connection.query(
    'select from exportd.backfills where id = $1 and batch_export_id = $2',
    [body.backfill_id, batchExport.id],
  );
  if (rows.length === 0) throw new CommandRejected('not_found', 'Not found.');
  const backfill = await transaction.lock(backfillDecider, body.backfill_id);
  const events = decideBackfillControl(backfill.state(), command);
  await backfill.append(cause, events);
  if (command !== 'cancel' || events.length === 0)
    return createEffect(events.length > 0, { wake_backfills: [body.backfill_id] });
  const cancellation = { cause, reason: 'The backfill was cancelled.' };
  // Its queue ends with a repair. Later comparisons find what is still late, and start another one.
  const state = backfill.state();
  if (state.status !== 'Absent' && state.spec.plan.kind === 'repair')
    await endRepairs(transaction.connection, batchExport.id);
  const cancelled = await cancelRuns(transaction, batchExport.id, 'unwanted', cancellation);
  await cancelUnwantedRetries(transaction, batchExport.id, cancellation);
  return createEffect(true, { wake_backfills: [body.backfill_id], cancel_runs: cancelled });
}

import { backfillDecider, decideBackfillControl } from '../../domain/backfill.ts';
import { decideDelete, requireLive } from '../../domain/batch_export.ts';
import { CommandRejected } from '../../domain/errors.ts';
import { decideCancel, runDecider } from '../../domain/run.ts';
import { endComparisons } from '../due_comparisons.ts';
import { dropNotifications } from '../notifications.ts';
import { cancelRuns } from '../run_outcomes.ts';
import { createEffect, type CommandContext, type CommandEffect } from './context.ts';

/** Deletes the export and cancels its backfills and active runs. Published objects stay in the bucket. */
export async function applyDelete(context: CommandContext): Promise<CommandEffect> {
  const { transaction, batchExport, cause } = context;
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
  // Nobody can read them any more, and they name rows by their ids.
  await transaction.connection.query('delete from exportd.verifications where batch_export_id = $1', [
    batchExport.id,
  ]);
  // After locking the runs: a completing run resolves incidents while it holds its own lock.
  await dropNotifications(transaction.connection, batchExport.id);
  return createEffect(true, { wake_backfills: rows.map(({ id }) => id), cancel_runs: cancelled });
}

/** Cancels one run. */
export async function applyCancelRun(
  context: CommandContext,
  body: { run_id: string },
): Promise<CommandEffect> {
  const { transaction, batchExport, cause } = context;
  requireLive(batchExport.state());
  const run = await transaction.lock(runDecider, body.run_id);
  const state = run.state();
  if (state.status === 'Absent' || state.spec.batch_export_id !== batchExport.id)
    throw new CommandRejected('not_found', 'Not found.');
  await run.append(cause, decideCancel(state, 'Cancelled by a user.'));
  const { rows } = await transaction.connection.query<{ backfill_id: string }>(
    'select backfill_id from exportd.backfill_runs where run_id = $1 and status is null order by backfill_id',
    [body.run_id],
  );
  return createEffect(true, {
    cancel_runs: [body.run_id],
    wake_backfills: rows.map(({ backfill_id }) => backfill_id),
  });
}

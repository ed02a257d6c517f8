import { requireLive } from '../../domain/batch_export.ts';
import { CommandRejected } from '../../domain/errors.ts';
import { decideCancel, runDecider } from '../../domain/run.ts';
import { type CommandContext, type CommandEffect, createEffect } from './command_context.ts';

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
  const events = decideCancel(state, 'Cancelled by a user.');
  await run.append(cause, events);
  // The run asks its bucket when it publishes, so it continues.
  if (events.every(({ type }) => type !== 'RunCancelled')) return createEffect(true);
  const { rows } = await transaction.connection.query<{ backfill_id: string }>(
    'select backfill_id from exportd.backfill_runs where run_id = $1 and status is null order by backfill_id',
    [body.run_id],
  );
  return createEffect(true, {
    cancel_runs: [body.run_id],
    wake_backfills: rows.map(({ backfill_id }) => backfill_id),
  });
}

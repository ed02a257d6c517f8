import { decideRetryOfFailed } from '../../domain/backfill_request.ts';
import { deterministicId } from '../../journal/journal.ts';
import { findFailedIntervals } from '../failed_intervals.ts';
import { createBackfill } from './backfill.ts';
import { createEffect, type CommandContext, type CommandEffect } from './context.ts';

/**
 * Exports the intervals again whose newest run failed since a time, or ever, with one backfill of all of them: they are
 * many after an outage, and the limits on ranges that a user chooses do not apply to them. Runs that are held for a
 * decision are left out.
 */
export async function applyRetryFailed(
  context: CommandContext,
  body: { since?: string | null },
): Promise<CommandEffect> {
  const { batchExport, transaction, commandId, cause } = context;
  const failed_runs = { since: body.since ?? null, until: transaction.now.toISOString() };
  const failed = await findFailedIntervals(transaction.connection, batchExport.id, failed_runs);
  const backfill_id = deterministicId('command', commandId, 'backfill');
  const runs = failed?.intervals ?? 0;
  await batchExport.append(
    cause,
    decideRetryOfFailed(batchExport.state(), { backfill_id, runs, ...failed_runs }),
  );
  if (!failed) return createEffect(false, { outcome: { runs } });
  const request = {
    backfill_id,
    start_at: failed.start,
    end_at: failed.end,
    allow_shrink: false,
    failed_runs,
  };
  const effect = await createBackfill(context, request, failed, null);
  return { ...effect, outcome: { ...effect.outcome, runs } };
}

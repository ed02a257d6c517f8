import { decideRetry, decideRetryOfFailed } from '../../domain/backfill.ts';
import { CommandRejected } from '../../domain/errors.ts';
import { deterministicId } from '../../journal/journal.ts';
import { findActiveRun } from '../active_runs.ts';
import { findFailedIntervals } from '../failed_intervals.ts';
import { createBackfill, requireBackfillCapacity } from './backfill.ts';
import { type CommandContext, type CommandEffect, createEffect } from './command_context.ts';

/** Retries a run: creates a backfill of its interval. */
export async function applyRetry(context: CommandContext, body: { run_id: string }): Promise<CommandEffect> {
  const { batchExport, transaction, commandId, cause } = context;
  const { rows } = await transaction.connection.query<{ start: string; end: string }>(
    `select data_interval_start as start, data_interval_end as end from exportd.batch_export_runs
     where id = $1 and batch_export_id = $2`,
    [body.run_id, batchExport.id],
  );
  const [interval] = rows;
  if (!interval) throw new CommandRejected('not_found', 'Not found.');
  const backfillId = deterministicId('command', commandId, 'backfill');
  await batchExport.append(
    cause,
    decideRetry(batchExport.state(), {
      backfill_id: backfillId,
      run_id: body.run_id,
      interval,
      active_run_id: await findActiveRun(transaction.connection, batchExport.id, interval),
    }),
  );
  await requireBackfillCapacity(context);
  return createBackfill(context, {
    backfill_id: backfillId,
    start_at: interval.start,
    end_at: interval.end,
    allow_shrink: false,
    plan: { kind: 'retry', run_id: body.run_id, interval },
  });
}

/**
 * Re-exports every interval whose latest run failed (since `since`, if given), with one backfill for all of them: they are
 * many after an outage, and the limits on ranges that a user chooses do not apply to them. Runs that are held for a
 * decision are left out.
 */
export async function applyRetryFailed(
  context: CommandContext,
  body: { since?: string | null },
): Promise<CommandEffect> {
  const { batchExport, transaction, commandId, cause } = context;
  const failed = { since: body.since ?? null, until: transaction.now.toISOString() };
  const range = await findFailedIntervals(transaction.connection, batchExport.id, failed);
  const backfill_id = deterministicId('command', commandId, 'backfill');
  const runs = range?.intervals ?? 0;
  await batchExport.append(cause, decideRetryOfFailed(batchExport.state(), { backfill_id, runs, ...failed }));
  if (!range) return createEffect(false, { outcome: { runs } });
  const effect = await createBackfill(context, {
    backfill_id,
    start_at: range.start,
    end_at: range.end,
    allow_shrink: false,
    plan: { kind: 'failed', failed, range },
  });
  return { ...effect, outcome: { ...effect.outcome, runs } };
}

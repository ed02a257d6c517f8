import { requireBackfillRange } from '../../domain/backfill.ts';
import { decidePause, decideUnpause, requireLive } from '../../domain/batch_export.ts';
import { deterministicId } from '../../journal/journal.ts';
import { findRunningRepair } from '../repairs.ts';
import { backfillLimits, startBackfill } from './backfill.ts';
import { type CommandContext, type CommandEffect, createEffect } from './command_context.ts';

export async function applyPause(
  context: CommandContext,
  body: { last_paused_at?: string | null | undefined },
): Promise<CommandEffect> {
  const events = decidePause(context.batchExport.state(), { last_paused_at: body.last_paused_at ?? null });
  await context.batchExport.append(context.cause, events);
  return createEffect(events.length > 0);
}

/** Unpauses the export. `backfill: true` also backfills the intervals that were missed during the pause. */
export async function applyUnpause(
  context: CommandContext,
  body: { backfill?: boolean | undefined },
): Promise<CommandEffect> {
  const { batchExport, transaction, commandId, cause } = context;
  const backfillId = body.backfill === true ? deterministicId('command', commandId, 'backfill') : null;
  const events = decideUnpause(batchExport.state(), { now: transaction.now, backfill_id: backfillId });
  await batchExport.append(cause, events);
  const repairs = events.length > 0 ? await findRunningRepair(transaction.connection, batchExport.id) : [];
  const requested = events.find((event) => event.type === 'BackfillRequested');
  if (!requested) return createEffect(events.length > 0, { wake_backfills: repairs });
  const request = { ...requested.data, ...backfillLimits(context) };
  const range = requireBackfillRange(requireLive(batchExport.state()), request, 'backfill');
  const effect = await startBackfill(context, requested.data, range);
  return { ...effect, wake_backfills: [...effect.wake_backfills, ...repairs] };
}

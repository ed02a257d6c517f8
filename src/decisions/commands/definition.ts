import {
  decideCreate,
  decidePause,
  decideUnpause,
  requireLive,
  type BatchExportDefinition,
} from '../../domain/batch_export.ts';
import { requireBackfillRange } from '../../domain/backfill_request.ts';
import { decideUpdate } from '../../domain/batch_export_update.ts';
import { deterministicId } from '../../journal/journal.ts';
import { checkDestination, affectsDestination } from '../destination_rules.ts';
import { backfillLimits, startBackfill } from './backfill.ts';
import { createEffect, type CommandContext, type CommandEffect } from './context.ts';

/** Creates the export and checks its destination. */
export async function applyCreate(
  context: CommandContext,
  body: { team_id: number; definition: BatchExportDefinition; paused: boolean },
): Promise<CommandEffect> {
  const { batchExport, transaction, cause } = context;
  await batchExport.append(cause, decideCreate(batchExport.state(), { ...body, now: transaction.now }));
  const created = batchExport.state();
  if (created.status === 'live') await checkDestination(transaction.connection, batchExport.id, created);
  return createEffect(true);
}

/** Changes the definition. `paused` in the body pauses or unpauses like the dedicated commands. */
export async function applyUpdate(
  context: CommandContext,
  body: {
    changes: Partial<BatchExportDefinition>;
    paused?: boolean;
    last_paused_at?: string | null;
  },
): Promise<CommandEffect> {
  const { batchExport, transaction, cause } = context;
  // Before the change, because the interval that contains now is one of the old definition.
  const pauseEffect = await applyPausedField({ ...context, cause: `${cause}/paused` }, body.paused);
  const before = batchExport.state();
  const updated = decideUpdate(before, { changes: body.changes, now: transaction.now });
  await batchExport.append(cause, updated);
  const after = batchExport.state();
  if (
    before.status === 'live' &&
    after.status === 'live' &&
    affectsDestination(before.definition, after.definition)
  )
    await checkDestination(transaction.connection, batchExport.id, after);
  if (body.last_paused_at !== undefined)
    await batchExport.append(`${cause}/last_paused_at`, [
      { type: 'BatchExportLastPausedAtSet', data: { last_paused_at: body.last_paused_at } },
    ]);
  const applied = updated.length > 0 || pauseEffect.applied || body.last_paused_at !== undefined;
  return { ...pauseEffect, applied };
}

async function applyPausedField(
  context: CommandContext,
  paused: boolean | undefined,
): Promise<CommandEffect> {
  if (paused === undefined) return createEffect(false);
  return paused ? applyPause(context, {}) : applyUnpause(context, {});
}

/** Pauses the export. */
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
  const requested = events.find((event) => event.type === 'BackfillRequested');
  if (!requested) return createEffect(events.length > 0);
  const request = { ...requested.data, ...backfillLimits(context) };
  const range = requireBackfillRange(requireLive(batchExport.state()), request, 'backfill');
  return startBackfill(context, requested.data, range);
}

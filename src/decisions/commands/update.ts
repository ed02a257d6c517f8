import { type BatchExportDefinition, decideUpdate } from '../../domain/batch_export.ts';
import { affectsDestination, checkDestination } from '../destination_rules.ts';
import { type CommandContext, type CommandEffect, createEffect } from './command_context.ts';
import { applyPause, applyUnpause } from './pause.ts';

/** Changes the definition. `paused` in the body pauses or unpauses like the dedicated commands. */
export async function applyUpdate(
  context: CommandContext,
  body: {
    changes: Partial<BatchExportDefinition>;
    paused?: boolean;
    last_paused_at?: string | null;
  },
): Promise<CommandEffect> {
  const { batchExport, transaction, policies, cause } = context;
  // Before the change, because the interval that contains now is one of the old definition.
  const pauseContext = { ...context, cause: `${cause}/paused` };
  const pauseEffect =
    body.paused === undefined
      ? createEffect(false)
      : await (body.paused ? applyPause(pauseContext, {}) : applyUnpause(pauseContext, {}));
  const before = batchExport.state();
  const updated = decideUpdate(before, { changes: body.changes, now: transaction.now });
  await batchExport.append(cause, updated);
  const after = batchExport.state();
  if (
    before.status === 'live' &&
    after.status === 'live' &&
    affectsDestination(before.definition, after.definition)
  )
    await checkDestination(transaction.connection, policies.configRules, batchExport.id, after);
  if (body.last_paused_at !== undefined)
    await batchExport.append(`${cause}/last_paused_at`, [
      { type: 'BatchExportLastPausedAtSet', data: { last_paused_at: body.last_paused_at } },
    ]);
  const applied = updated.length > 0 || pauseEffect.applied || body.last_paused_at !== undefined;
  return { ...pauseEffect, applied };
}

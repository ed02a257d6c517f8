import { type BatchExportDefinition, decideCreate } from '../../domain/batch_export.ts';
import { checkDestination } from '../destination_rules.ts';
import { type CommandContext, type CommandEffect, createEffect } from './command_context.ts';

/** Creates the export and checks its destination. */
export async function applyCreate(
  context: CommandContext,
  body: { team_id: number; definition: BatchExportDefinition; paused: boolean },
): Promise<CommandEffect> {
  const { batchExport, transaction, policies, cause } = context;
  await batchExport.append(cause, decideCreate(batchExport.state(), { ...body, now: transaction.now }));
  const created = batchExport.state();
  if (created.status === 'live')
    await checkDestination(transaction.connection, policies.configRules, batchExport.id, created);
  return createEffect(true);
}

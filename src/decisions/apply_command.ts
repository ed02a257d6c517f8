import { batchExportDecider, type BatchExportDefinition } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import { lockPendingCommand, recordCommandOutcome, type Command } from '../journal/commands.ts';
import type { Journal } from '../journal/journal.ts';
import { writeLogLine } from '../journal/log_lines.ts';
import { isTransient } from '../journal/database_errors.ts';
import { applyBackfill, applyRetry, applyBackfillControl } from './commands/backfill.ts';
import type { CommandContext, CommandEffect } from './commands/context.ts';
import { applyCreate, applyPause, applyUnpause, applyUpdate } from './commands/definition.ts';
import { applyCancelRun, applyDelete } from './commands/delete_and_cancel.ts';
import type { Policies } from './policies.ts';

/** Bodies were validated before they were stored, each against the schema of its command. */
function decide(context: CommandContext, command: Command): Promise<CommandEffect> {
  const body: unknown = command.body;
  switch (command.name) {
    case 'create':
      return applyCreate(context, {
        team_id: command.team_id,
        ...(body as { definition: BatchExportDefinition; paused: boolean }),
      });
    case 'update':
      return applyUpdate(context, body as Parameters<typeof applyUpdate>[1]);
    case 'pause':
      return applyPause(context, body as Parameters<typeof applyPause>[1]);
    case 'unpause':
      return applyUnpause(context, body as Parameters<typeof applyUnpause>[1]);
    case 'backfill':
      return applyBackfill(context, body as Parameters<typeof applyBackfill>[1]);
    case 'retry':
      return applyRetry(context, body as Parameters<typeof applyRetry>[1]);
    case 'delete':
      return applyDelete(context);
    case 'cancelRun':
      return applyCancelRun(context, body as Parameters<typeof applyCancelRun>[1]);
    case 'cancelBackfill':
      return applyBackfillControl(context, body as { backfill_id: string }, 'cancel');
    case 'pauseBackfill':
      return applyBackfillControl(context, body as { backfill_id: string }, 'pause');
    case 'unpauseBackfill':
      return applyBackfillControl(context, body as { backfill_id: string }, 'unpause');
  }
}

/**
 * Decides one stored command under the export's lock, in one transaction with its events, its read models and its
 * outcome. A refusal is an outcome too; a command that is not pending any more is left alone. So is a fault that would
 * come again: it is told to `onError` and the command ends rejected, or it would keep all that follow it waiting for ever.
 * @returns what has to be done outside the database, or undefined when nothing has.
 */
export async function applyCommand(
  journal: Journal,
  policies: Policies,
  batchExportId: string,
  commandId: string,
  onError: (fault: unknown) => void,
): Promise<CommandEffect | undefined> {
  try {
    return await journal.transaction(async (transaction) => {
      const batchExport = await transaction.lock(batchExportDecider, batchExportId);
      const command = await lockPendingCommand(transaction.connection, commandId);
      if (!command) return undefined;
      const cause = `command:${commandId}`;
      const done = await decide({ transaction, batchExport, policies, commandId, cause }, command);
      await recordCommandOutcome(
        transaction.connection,
        commandId,
        done.applied ? 'applied' : 'no-op',
        done.outcome,
      );
      return done;
    });
  } catch (error) {
    if (isTransient(error)) throw error;
    if (!(error instanceof CommandRejected)) onError(error);
    await rejectCommand(journal, commandId, error instanceof CommandRejected ? error : internalError());
    return undefined;
  }
}

const internalError = (): CommandRejected =>
  new CommandRejected(
    'internal_error',
    'exportd met an error that it does not know. Nothing was changed; the log of its worker says where it was.',
  );

/** Records a refusal in a transaction of its own: the one that found the reason was rolled back with all it did. */
async function rejectCommand(journal: Journal, commandId: string, refusal: CommandRejected): Promise<void> {
  await journal.transaction(async ({ connection }) => {
    const command = await lockPendingCommand(connection, commandId);
    if (!command) return;
    await recordCommandOutcome(connection, commandId, 'rejected', {
      code: refusal.code,
      detail: refusal.message,
      attr: refusal.attr,
    });
    await writeLogLine(connection, {
      team_id: command.team_id,
      batch_export_id: command.batch_export_id,
      run_id: null,
      level: 'WARNING',
      message: `The command ${command.name} was refused: ${refusal.message}`,
    });
  });
}

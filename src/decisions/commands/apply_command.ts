import { batchExportDecider, type BatchExportDefinition } from '../../domain/batch_export.ts';
import { CommandRejected } from '../../domain/errors.ts';
import { type Command, lockPendingCommand, recordCommandOutcome } from '../../journal/commands.ts';
import { isTransient } from '../../journal/database.ts';
import { type Journal, writeLogLine } from '../../journal/journal.ts';
import type { Policies } from '../policies.ts';
import { applyBackfill } from './backfill.ts';
import { applyCancelRun } from './cancel_run.ts';
import type { CommandContext, CommandEffect } from './command_context.ts';
import { applyBackfillControl } from './control_backfill.ts';
import { applyCreate } from './create.ts';
import { applyDelete } from './delete.ts';
import { applyPause, applyUnpause } from './pause.ts';
import { applyRetry, applyRetryFailed } from './retry.ts';
import { applyUpdate } from './update.ts';

/** Bodies were validated against the schema of their command before they were stored. */
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
    case 'retryFailed':
      return applyRetryFailed(context, body as Parameters<typeof applyRetryFailed>[1]);
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
 * Decides one stored command under the export's lock. Its events, read models and outcome are written in one
 * transaction. A rejection is an outcome too, and a command that is no longer pending is ignored. An error that would
 * recur is passed to `onError` and rejects the command, because it would otherwise block all later commands.
 * @returns what the workflow has to do outside the database, or undefined.
 */
export async function applyCommand(
  journal: Journal,
  policies: Policies,
  batchExportId: string,
  commandId: string,
  onError: (error: unknown) => void,
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
    'Unexpected error in exportd. Nothing was changed. See the worker log for the stack trace.',
  );

/** Records a rejection in a new transaction, because the one that decided it was rolled back. */
async function rejectCommand(journal: Journal, commandId: string, rejection: CommandRejected): Promise<void> {
  await journal.transaction(async ({ connection }) => {
    const command = await lockPendingCommand(connection, commandId);
    if (!command) return;
    await recordCommandOutcome(connection, commandId, 'rejected', {
      code: rejection.code,
      detail: rejection.message,
      attr: rejection.attr,
    });
    await writeLogLine(connection, {
      team_id: command.team_id,
      batch_export_id: command.batch_export_id,
      run_id: null,
      level: 'WARNING',
      message: `Command ${command.name} was rejected: ${rejection.message}`,
    });
  });
}

import { backfillDecider, decideBackfillControl, requireBackfillRange } from '../domain/backfill.ts';
import {
  batchExportDecider,
  type BatchExportDefinition,
  decideCreate,
  decideDelete,
  decidePause,
  decideUnpause,
  requireLive,
} from '../domain/batch_export.ts';
import { decideUpdate } from '../domain/due_intervals.ts';
import { CommandRejected } from '../domain/errors.ts';
import { decideCancel, runDecider } from '../domain/run.ts';
import { type Command, lockPendingCommand, recordCommandOutcome } from '../journal/commands.ts';
import { isTransient } from '../journal/database.ts';
import { deterministicId, type Journal, writeLogLine } from '../journal/journal.ts';
import {
  applyBackfill,
  applyBackfillControl,
  applyRetry,
  applyRetryFailed,
  backfillLimits,
  type CommandContext,
  type CommandEffect,
  createEffect,
  startBackfill,
} from './backfill_commands.ts';
import { affectsDestination, checkDestination } from './destination_rules.ts';
import { endComparisons } from './due_comparisons.ts';
import { cleanUpTimeOf, eraseSecrets } from './erase_secrets.ts';
import { dropNotifications } from './notifications.ts';
import type { Policies } from './create_run.ts';
import { cancelRuns } from './run_outcomes.ts';

/** Creates the export and checks its destination. */
async function applyCreate(
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
async function applyUpdate(
  context: CommandContext,
  body: {
    changes: Partial<BatchExportDefinition>;
    paused?: boolean;
    last_paused_at?: string | null;
  },
): Promise<CommandEffect> {
  const { batchExport, transaction, cause } = context;
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
    await checkDestination(transaction.connection, batchExport.id, after);
  if (body.last_paused_at !== undefined)
    await batchExport.append(`${cause}/last_paused_at`, [
      { type: 'BatchExportLastPausedAtSet', data: { last_paused_at: body.last_paused_at } },
    ]);
  const applied = updated.length > 0 || pauseEffect.applied || body.last_paused_at !== undefined;
  return { ...pauseEffect, applied };
}

async function applyPause(
  context: CommandContext,
  body: { last_paused_at?: string | null | undefined },
): Promise<CommandEffect> {
  const events = decidePause(context.batchExport.state(), { last_paused_at: body.last_paused_at ?? null });
  await context.batchExport.append(context.cause, events);
  return createEffect(events.length > 0);
}

/** Unpauses the export. `backfill: true` also backfills the intervals that were missed during the pause. */
async function applyUnpause(
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

/**
 * Deletes the export, cancels its backfills and active runs, and erases its secrets unless objects are left to delete.
 * Published objects stay in the bucket.
 */
async function applyDelete(context: CommandContext): Promise<CommandEffect> {
  const { transaction, batchExport, policies, cause } = context;
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
  // They can no longer be read, and they name rows by their ids.
  await transaction.connection.query('delete from exportd.verifications where batch_export_id = $1', [
    batchExport.id,
  ]);
  // After locking the runs: a completing run resolves incidents while it holds its own lock.
  await dropNotifications(transaction.connection, batchExport.id);
  await eraseSecrets(transaction.connection, {
    batchExportId: batchExport.id,
    cleanUpMs: cleanUpTimeOf(policies.maintenance),
  });
  return createEffect(true, { wake_backfills: rows.map(({ id }) => id), cancel_runs: cancelled });
}

async function applyCancelRun(context: CommandContext, body: { run_id: string }): Promise<CommandEffect> {
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

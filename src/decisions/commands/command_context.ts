import type { BatchExportEvent, BatchExportState } from '../../domain/batch_export.ts';
import type { CommandOutcome } from '../../journal/commands.ts';
import type { JournalTransaction, LockedStream } from '../../journal/journal.ts';
import type { Policies } from '../policies.ts';

/** What deciding a command requires. */
export interface CommandContext {
  readonly transaction: JournalTransaction;
  readonly batchExport: LockedStream<BatchExportState, BatchExportEvent>;
  readonly policies: Policies;
  readonly commandId: string;
  /** The cause under which the command's events are appended. */
  readonly cause: string;
}

/** What the workflow has to do outside the database after a command. */
export interface CommandEffect {
  /** False when the command changed nothing. */
  readonly applied: boolean;
  readonly outcome: CommandOutcome;
  /** Backfills whose workflow has to be started or woken. */
  readonly wake_backfills: readonly string[];
  /** Runs whose workflow has to be cancelled. */
  readonly cancel_runs: readonly string[];
}

/** Creates an effect; without `more`, one that is limited to the database. */
export const createEffect = (applied: boolean, more: Partial<CommandEffect> = {}): CommandEffect => ({
  applied,
  outcome: {},
  wake_backfills: [],
  cancel_runs: [],
  ...more,
});

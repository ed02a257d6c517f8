import { type BatchExportEvent, type BatchExportState, requireLive } from './batch_export.ts';
import type { DecidedDifference, StoredDecision } from './difference.ts';
import { CommandRejected } from './errors.ts';
import type { DataInterval } from './intervals.ts';

/** What the ledger knows of the interval of a difference. */
interface DifferingInterval {
  /** The run of the current manifest; null without one. */
  readonly manifest_run_id: string | null;
  readonly active_run_id: string | null;
  /** Whether a held run, a comparison or a check calls for a decision. */
  readonly isOpen: boolean;
  readonly decision: StoredDecision | null;
}

/**
 * Decides about the rows of an interval that the source lacks: they are kept, or the interval is exported again without them.
 * @throws CommandRejected while a run of the interval is active, if its files have changed meanwhile, and if there is nothing
 *   to decide
 */
export function decideDifference(
  state: BatchExportState,
  {
    interval,
    ledger,
    decided,
  }: {
    readonly interval: DataInterval;
    readonly ledger: DifferingInterval;
    readonly decided: DecidedDifference;
  },
): BatchExportEvent[] {
  requireLive(state);
  if (ledger.active_run_id !== null)
    throw new CommandRejected('conflict', `Run ${ledger.active_run_id} of this interval is still active.`);
  if (ledger.manifest_run_id !== decided.run_id)
    throw new CommandRejected(
      'conflict',
      'The interval was exported again meanwhile. Read its difference again.',
    );
  const { decision } = ledger;
  if (decided.decision === 'keep' && !ledger.isOpen) {
    if (decision?.decision === 'keep' && isSameDifference(decision, decided))
      throw new CommandRejected(
        'conflict',
        `These rows were already kept at ${decision.at}: ${decision.reason}`,
      );
    if (decided.rows === 0)
      throw new CommandRejected(
        'conflict',
        'The source has all rows of the files: there is nothing to decide.',
      );
  }
  if (decided.decision === 'remove' && decided.missing === null)
    throw new CommandRejected(
      'conflict',
      'The rows of this interval cannot be compared with the source. Backfill it with allow_shrink to export what the source has.',
    );
  if (decided.decision === 'remove' && decided.rows === 0)
    throw new CommandRejected(
      'conflict',
      'The source has all rows of the files: there is nothing to remove.',
    );
  return [{ type: 'DifferenceDecided', data: { ...interval, ...decided } }];
}

const isSameDifference = (one: DecidedDifference, other: DecidedDifference): boolean =>
  one.rows === other.rows && one.missing?.encoded_buckets === other.missing?.encoded_buckets;

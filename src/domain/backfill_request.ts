import {
  requireLive,
  type BatchExportEvent,
  type BatchExportState,
  type LiveBatchExport,
  type RetryReason,
} from './batch_export.ts';
import { CommandRejected } from './errors.ts';
import { countIntervals, wholeIntervals } from './interval_ranges.ts';
import type { DataInterval } from './intervals.ts';

/** What a backfill will run: the bounds of its whole intervals, and how many they are. */
export interface BackfillRange extends DataInterval {
  readonly intervals: number;
}

/** A range of the past as it was asked for, and what bounds it. */
export interface RangeRequest {
  readonly start_at: string;
  readonly end_at: string;
  readonly now: Date;
  readonly maxIntervals: number;
}

/**
 * The whole intervals that touch a range of the past and have ended, with the boundaries that were in force.
 * @param lengthField the member of the command that makes the range as long as it is.
 * @throws CommandRejected that names the member at fault.
 */
export function requireBackfillRange(
  live: LiveBatchExport,
  request: RangeRequest,
  lengthField = 'start_at',
): BackfillRange {
  const { start_at, end_at, now, maxIntervals } = request;
  const start = new Date(start_at);
  const end = new Date(end_at);
  if (start >= end)
    throw new CommandRejected('invalid_input', '`start_at` must be before `end_at`.', 'start_at');
  if (end > now)
    throw new CommandRejected(
      'invalid_input',
      `The given \`end_at\` (${end_at}) is in the future.`,
      'end_at',
    );
  const range = wholeIntervals(live.revisions, { start, end }, now);
  if (!range)
    throw new CommandRejected('invalid_input', 'No interval in this range has ended yet.', 'end_at');
  const intervals = countIntervals(live.revisions, range, maxIntervals);
  if (intervals > maxIntervals)
    throw new CommandRejected(
      'invalid_input',
      `A backfill covers at most ${maxIntervals} intervals.`,
      lengthField,
    );
  return { ...range, intervals };
}

/** Requests a backfill of a range of the past. */
export function decideBackfill(
  state: BatchExportState,
  command: { readonly backfill_id: string } & RangeRequest,
): BatchExportEvent[] {
  requireBackfillRange(requireLive(state), command);
  const { backfill_id, start_at, end_at } = command;
  return [{ type: 'BackfillRequested', data: { backfill_id, start_at, end_at } }];
}

/** Requests one more run of a run's interval; refused while a run of that interval is active. */
export function decideRetry(
  state: BatchExportState,
  command: {
    backfill_id: string;
    run_id: string;
    reason?: RetryReason | undefined;
    interval: DataInterval;
    active_run_id: string | null;
  },
): BatchExportEvent[] {
  requireLive(state);
  const { backfill_id, run_id, reason, interval } = command;
  if (command.active_run_id !== null)
    throw new CommandRejected('conflict', `Run ${command.active_run_id} of this interval is still active.`);
  return [
    {
      type: 'RunRetryRequested',
      data: { backfill_id, run_id, ...(reason && { reason }), ...interval },
    },
  ];
}

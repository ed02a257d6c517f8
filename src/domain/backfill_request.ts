import {
  requireLive,
  type BatchExportEvent,
  type BatchExportState,
  type LiveBatchExport,
  type RetryReason,
} from './batch_export.ts';
import { CommandRejected } from './errors.ts';
import type { FailureTime } from './failure_time.ts';
import { countIntervals, wholeIntervals } from './interval_ranges.ts';
import type { DataInterval } from './intervals.ts';

/** The whole intervals that a backfill covers: their bounds and their number. */
export interface BackfillRange extends DataInterval {
  readonly intervals: number;
}

/** A requested range of the past, with the current time and the limit on its length. */
export interface RangeRequest {
  readonly start_at: string;
  readonly end_at: string;
  readonly now: Date;
  readonly maxIntervals: number;
}

/**
 * Returns the ended intervals that overlap a range, by the schedule revisions that were in force then.
 * @param lengthField the command's field that an error names when the range is too long.
 * @throws CommandRejected when the range is empty, in the future or too long.
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
    throw new CommandRejected('invalid_input', `\`end_at\` (${end_at}) is in the future.`, 'end_at');
  const range = wholeIntervals(live.revisions, { start, end }, now);
  if (!range)
    throw new CommandRejected('invalid_input', 'No interval in this range has ended yet.', 'end_at');
  const intervals = countIntervals(live.revisions, range, maxIntervals);
  if (intervals > maxIntervals)
    throw new CommandRejected(
      'invalid_input',
      `A backfill covers at most ${maxIntervals} intervals (EXPORTD_MAX_BACKFILL_INTERVALS). Split the range.`,
      lengthField,
    );
  return { ...range, intervals };
}

/** Requests a backfill of a past range. */
export function decideBackfill(
  state: BatchExportState,
  command: { readonly backfill_id: string; readonly allow_shrink: boolean } & RangeRequest,
): BatchExportEvent[] {
  requireBackfillRange(requireLive(state), command);
  const { backfill_id, start_at, end_at, allow_shrink } = command;
  return [{ type: 'BackfillRequested', data: { backfill_id, start_at, end_at, allow_shrink } }];
}

/** Requests another run for each interval whose run failed; nothing if there is none. */
export function decideRetryOfFailed(
  state: BatchExportState,
  command: { readonly backfill_id: string; readonly runs: number } & FailureTime,
): BatchExportEvent[] {
  requireLive(state);
  if (command.runs === 0) return [];
  const { backfill_id, runs, since, until } = command;
  return [{ type: 'FailedRunsRetryRequested', data: { backfill_id, runs, since, until } }];
}

/**
 * Requests another run for the interval of a run.
 * @throws CommandRejected while a run of that interval is active.
 */
export function decideRetry(
  state: BatchExportState,
  command: {
    backfill_id: string;
    run_id: string;
    allow_shrink: boolean;
    reason?: RetryReason | undefined;
    interval: DataInterval;
    active_run_id: string | null;
  },
): BatchExportEvent[] {
  requireLive(state);
  const { backfill_id, run_id, allow_shrink, reason, interval } = command;
  if (command.active_run_id !== null)
    throw new CommandRejected('conflict', `Run ${command.active_run_id} of this interval is still active.`);
  return [
    {
      type: 'RunRetryRequested',
      data: { backfill_id, run_id, allow_shrink, ...(reason && { reason }), ...interval },
    },
  ];
}

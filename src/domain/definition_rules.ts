import { CommandRejected } from './errors.ts';
import { parseInterval } from './intervals.ts';

/** The fields of a definition that must be consistent with each other. */
interface ScheduleFields {
  readonly interval: string;
  readonly offset_hour: number;
  readonly offset_day: number;
  readonly start_at: string | null;
  readonly end_at: string | null;
}

const maxOffsetDay: Readonly<Record<string, number>> = { week: 6, month: 27 };

/** Whether an interval can start at an hour other than midnight: day, week and month. */
export const supportsOffsets = (interval: string): boolean => {
  const unit = parseInterval(interval);
  return unit !== undefined && unit.name !== 'minutes';
};

/** Whether an interval can start on another day than its first: week and month. */
export const supportsDayOffset = (interval: string): boolean => interval in maxOffsetDay;

/**
 * Checks that the offsets fit the interval and that `start_at` is before `end_at`.
 * @param changes the fields that the command sets; an error about the bounds names one of them.
 * @throws CommandRejected with the invalid field.
 */
export function requireConsistent(
  { interval, offset_hour, offset_day, start_at, end_at }: ScheduleFields,
  changes: object,
): void {
  if (offset_hour !== 0 && !supportsOffsets(interval))
    throw invalidField(`offset_hour is not applicable to the interval '${interval}'.`, 'offset_hour');
  const max = maxOffsetDay[interval] ?? 0;
  if (offset_day !== 0 && max === 0)
    throw invalidField(`offset_day is not applicable to the interval '${interval}'.`, 'offset_day');
  if (offset_day > max) throw invalidField(`Must be at most ${max}.`, 'offset_day');
  if (start_at !== null && end_at !== null && new Date(start_at) >= new Date(end_at))
    throw 'end_at' in changes
      ? invalidField('`end_at` must be after `start_at`.', 'end_at')
      : invalidField('`start_at` must be before `end_at`.', 'start_at');
}

const invalidField = (detail: string, attr: string): CommandRejected =>
  new CommandRejected('invalid_input', detail, attr);

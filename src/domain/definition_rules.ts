import { CommandRejected } from './errors.ts';
import { parseInterval } from './intervals.ts';

/** The members of a batch export's definition that have to suit each other. */
interface ScheduleFields {
  readonly interval: string;
  readonly offset_hour: number;
  readonly offset_day: number;
  readonly start_at: string | null;
  readonly end_at: string | null;
}

const maxOffsetDay: Readonly<Record<string, number>> = { week: 6, month: 27 };

/** Whether an interval may begin at another hour than midnight: a day and longer. */
export const supportsOffsets = (interval: string): boolean => {
  const unit = parseInterval(interval);
  return unit !== undefined && unit.kind !== 'minutes';
};

/**
 * Checks what no member shows alone: whether the offsets suit the interval and the bounds each other.
 * @param written the members that the command names, so that the refusal is of one of them.
 * @throws CommandRejected that names the member at fault.
 */
export function requireConsistent(
  { interval, offset_hour, offset_day, start_at, end_at }: ScheduleFields,
  written: object,
): void {
  if (offset_hour !== 0 && !supportsOffsets(interval))
    throw refused(`offset_hour is not applicable to the interval '${interval}'.`, 'offset_hour');
  const largest = maxOffsetDay[interval] ?? 0;
  if (offset_day !== 0 && largest === 0)
    throw refused(`offset_day is not applicable to the interval '${interval}'.`, 'offset_day');
  if (offset_day > largest)
    throw refused(`Ensure this value is less than or equal to ${largest}.`, 'offset_day');
  if (start_at !== null && end_at !== null && new Date(start_at) >= new Date(end_at))
    throw 'end_at' in written
      ? refused('`end_at` must be after `start_at`.', 'end_at')
      : refused('`start_at` must be before `end_at`.', 'start_at');
}

const refused = (detail: string, attr: string): CommandRejected =>
  new CommandRejected('invalid_input', detail, attr);

import type { DateTime } from 'luxon';
import { QueryError } from '../query_errors.ts';
import { endForInterval } from './intervals.ts';
import { daysLater, firstOfDay, localDayOf, localOf, momentOfLocal } from './local_time.ts';
import { parseRelativeDate } from '../../filters/dates.ts';
import { momentBefore } from './relative_date.ts';
import { rangeBetween, type DateContext, type ResolvedRange } from './resolved_range.ts';
import type { DateRange } from './schema.ts';

const day = 86_400_000;
const compareTo = 'query__compareFilter__compare_to';

/**
 * The range that another one is compared with. By default, one of the same length directly before it, between the same
 * local times; else the range moved back by `distance`, such as `-1w`.
 * @throws QueryError for an invalid `distance`
 */
export function previousRange(
  range: DateRange | null | undefined,
  distance: string | null,
  resolved: ResolvedRange,
  { project }: DateContext,
): ResolvedRange {
  const { interval } = resolved;
  const { from, to } =
    distance === null ? directlyBefore(range, resolved) : movedBy(distance, resolved, project);
  return rangeBetween(from, to, interval, project, distance === null ? 'query__dateRange' : compareTo);
}

interface Bounds {
  readonly from: DateTime;
  readonly to: DateTime;
}

function movedBy(distance: string, { from, to }: ResolvedRange, project: DateContext['project']): Bounds {
  const relative = parseRelativeDate(distance);
  if (relative?.position !== null)
    throw new QueryError(
      'invalid_input',
      'This is not a valid time span. Use a relative date, such as -1w or -1m.',
      {
        attr: compareTo,
      },
    );
  const moved = { from: momentBefore(from, relative, project), to: momentBefore(to, relative, project) };
  if (moved.from.isValid && moved.from.year >= 1000) return moved;
  throw new QueryError('invalid_input', 'This time span is too long.', { attr: compareTo });
}

function directlyBefore(range: DateRange | null | undefined, { interval, from, to }: ResolvedRange): Bounds {
  const length = to.diff(from);
  if (range?.explicitDate === true || interval === 'minute')
    return { from: from.minus(length).minus(1), to: from.minus(1) };
  if (interval === 'hour') {
    const startTime = localDayOf(from.minus(length)) + (localOf(from) - localDayOf(from));
    const first = momentOfLocal(startTime, from.zone, 'first');
    return { from: first, to: endForInterval(first.plus(length), 'hour') };
  }
  const days = (localDayOf(to) - localDayOf(from)) / day + 1;
  const back = interval === 'day' && isWholeWeeks(range) ? days - 1 : days;
  return { from: daysBefore(from, back), to: endForInterval(daysBefore(to, back), interval) };
}

/** `-7d` up to today has eight days. Moved back by seven days, each day is compared with the same weekday. */
function isWholeWeeks(range: DateRange | null | undefined): boolean {
  if (range?.date_to) return false;
  if (!range?.date_from) return true;
  const relative = parseRelativeDate(range.date_from);
  return relative?.unit === 'day' && relative.amount > 0 && relative.amount % 7 === 0;
}

const daysBefore = (moment: DateTime, days: number): DateTime =>
  firstOfDay(momentOfLocal(daysLater(localDayOf(moment), -days), moment.zone, 'first'));

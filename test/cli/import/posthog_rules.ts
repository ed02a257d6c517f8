import { DateTime } from 'luxon';

/** An interval in milliseconds since 1970. */
interface OldInterval {
  readonly start: number;
  readonly end: number;
  /** Whether DST repeats its end: PostHog then has two runs. */
  readonly isRepeated: boolean;
}

/** The fields of an export of PostHog that decide about its intervals. */
interface OldDefinition {
  readonly interval: string;
  readonly timezone?: string | null;
  readonly offset_hour?: number | null;
  readonly offset_day?: number | null;
  readonly start_at?: string | null;
  readonly end_at?: string | null;
}

/**
 * The intervals of PostHog that end in `(since, until]`, oldest first, by its rules. Up to an hour: each multiple of the
 * length since 1970 has a run. Longer: each local time of the schedule's hour, and weekday, has one; Temporal skips times
 * that DST skips. A run exports the time from its own, less a day or week of the calendar, to before its own.
 */
export function posthogIntervals(definition: OldDefinition, since: Date, until: Date): OldInterval[] {
  const { start_at, end_at } = definition;
  const all = definition.interval === 'day' || definition.interval === 'week' ? ofCalendar : ofEpoch;
  return all(definition, since, until).filter(
    ({ end }) =>
      end > since.getTime() &&
      end <= until.getTime() &&
      (!start_at || end >= Date.parse(start_at)) &&
      (!end_at || end <= Date.parse(end_at)),
  );
}

function ofEpoch({ interval }: OldDefinition, since: Date, until: Date): OldInterval[] {
  const minutes = Number(/^every (\d+) minutes$/.exec(interval)?.[1] ?? 60);
  const length = minutes * 60_000;
  const found: OldInterval[] = [];
  for (let end = Math.floor(since.getTime() / length) * length; end <= until.getTime(); end += length)
    found.push({ start: end - length, end, isRepeated: false });
  return found;
}

function ofCalendar(
  { interval, timezone, offset_hour, offset_day }: OldDefinition,
  since: Date,
  until: Date,
): OldInterval[] {
  const zone = timezone ?? 'UTC';
  const found: OldInterval[] = [];
  let date = DateTime.fromJSDate(since, { zone: 'UTC' }).startOf('day').minus({ days: 1 });
  for (; date.toMillis() < until.getTime() + 2 * 86_400_000; date = date.plus({ days: 1 })) {
    const { year, month, day, weekday } = date;
    const hour = offset_hour ?? 0;
    const local = DateTime.fromObject({ year, month, day, hour }, { zone });
    const isDue = interval === 'day' || weekday % 7 === (offset_day ?? 0);
    if (!isDue || local.hour !== hour) continue;
    const times = local.getPossibleOffsets();
    for (const time of times)
      found.push({
        start: time.minus(interval === 'day' ? { days: 1 } : { weeks: 1 }).toMillis(),
        end: time.toMillis(),
        isRepeated: times.length > 1,
      });
  }
  return found.sort((one, other) => one.end - other.end);
}

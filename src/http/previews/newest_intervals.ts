import { previousBoundary, type DataInterval, type ScheduleDefinition } from '../../domain/intervals.ts';

const dayMs = 86_400_000;

/** The newest interval of a schedule that has ended. */
export function newestInterval(schedule: ScheduleDefinition, now: Date): DataInterval {
  const end = previousBoundary(schedule, now);
  const start = previousBoundary(schedule, new Date(end.getTime() - 1));
  return { start: start.toISOString(), end: end.toISOString() };
}

/** The whole intervals of the day before the newest boundary; the newest interval alone when it is longer than a day. */
export function newestIntervals(
  schedule: ScheduleDefinition,
  now: Date,
): { readonly range: DataInterval; readonly intervals: number } {
  const { start, end } = newestInterval(schedule, now);
  const lengthMs = Date.parse(end) - Date.parse(start);
  const intervals = Math.max(1, Math.floor(dayMs / lengthMs));
  const rangeStart = new Date(Date.parse(end) - intervals * lengthMs).toISOString();
  return { range: { start: intervals === 1 ? start : rangeStart, end }, intervals };
}

/** The days up to a time, in UTC. */
export const daysBefore = (end: string, days: number): DataInterval => ({
  start: new Date(Date.parse(end) - days * dayMs).toISOString(),
  end,
});

import type { DataInterval } from '../domain/intervals.ts';

/** The cause under which an export's stream holds what the schedule decided for an interval or a skipped range. */
export const scheduledCause = ({ start, end }: DataInterval): string => `interval:${start}/${end}`;

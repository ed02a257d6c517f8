import { DateTime } from 'luxon';
import {
  type DataInterval,
  firstIntervalEndingFrom,
  intervalContaining,
  intervalFrom,
  nextBoundary,
  parseInterval,
  previousBoundary,
  type ScheduleDefinition,
} from '../../domain/intervals.ts';

/** What decides where PostHog stops. Times are ISO 8601. */
export interface OldSchedule {
  readonly paused: boolean;
  readonly start_at: string | null;
  readonly end_at: string | null;
  readonly runs: readonly OldRun[];
}

/** A run of PostHog. */
export interface OldRun {
  readonly status: string;
  readonly data_interval_start?: string | null | undefined;
  readonly data_interval_end: string;
}

/**
 * The boundary between the last interval of PostHog and the first of exportd. In both products an interval has the rows that
 * were inserted from its start to before its end, and is exported if its end is neither before `start_at` nor after `end_at`.
 * So with the seam as `end_at` there and `start_at` here, each row is exported once.
 */
export interface Seam {
  readonly last: DataInterval;
  readonly first: DataInterval;
  /** The end of the last interval of exportd; null without `end_at`. */
  readonly until: string | null;
  /** The `start_at` of the export here. */
  readonly start_at: string;
  /** Whether PostHog has to be given an `end_at`; one that is paused has stopped. */
  readonly stopsThere: boolean;
}

/**
 * Finds the seam of an export: for a paused one, where its completed runs end; else the first boundary at or after `from` and
 * after each of its runs.
 * @returns undefined if PostHog exports all intervals that the export has
 */
export function findSeam(definition: ScheduleDefinition, old: OldSchedule, from: Date): Seam | undefined {
  const revisions = [{ ...definition, effective_from: null }];
  const completed = newestEnd(old.runs.filter(({ status }) => status === 'Completed'));
  const hasStopped = old.paused && completed !== undefined;
  const stop = hasStopped
    ? previousBoundary(definition, completed)
    : boundaryFrom(definition, later(from, newestEnd(old.runs)));
  const begin =
    old.start_at === null ? stop : new Date(firstIntervalEndingFrom(revisions, old.start_at).start);
  const at = later(stop, begin);
  const first = intervalFrom(revisions, at);
  const end = old.end_at === null ? Number.POSITIVE_INFINITY : Date.parse(old.end_at);
  if (end < Date.parse(first.end)) return undefined;
  return {
    last: intervalContaining(revisions, new Date(at.getTime() - 1)),
    first,
    until: old.end_at === null ? null : previousBoundary(definition, new Date(end)).toISOString(),
    // It must be before end_at, also for one interval: any time within it will do.
    start_at: end === Date.parse(first.end) ? new Date(at.getTime() + 1_000).toISOString() : first.end,
    stopsThere: !hasStopped,
  };
}

/** Whether an instant is a boundary. */
export const isBoundary = (definition: ScheduleDefinition, instant: Date): boolean =>
  previousBoundary(definition, instant).getTime() === instant.getTime();

function newestEnd(runs: readonly OldRun[]): Date | undefined {
  const ends = runs.map(({ data_interval_end }) => Date.parse(data_interval_end));
  return ends.length === 0 ? undefined : new Date(Math.max(...ends));
}

const later = (one: Date, other: Date | undefined): Date =>
  other !== undefined && other > one ? other : one;

/** The first boundary at or after an instant that both products have. */
function boundaryFrom(definition: ScheduleDefinition, instant: Date): Date {
  let boundary = nextBoundary(definition, new Date(instant.getTime() - 1));
  while (isSkipped(definition, boundary)) boundary = nextBoundary(definition, boundary);
  return boundary;
}

/** Whether DST skips the local time of a boundary. exportd shifts it past the gap; Temporal's calendar has no run then. */
const isSkipped = ({ interval, timezone, offset_hour }: ScheduleDefinition, boundary: Date): boolean =>
  parseInterval(interval)?.name !== 'minutes' &&
  DateTime.fromJSDate(boundary, { zone: timezone }).hour !== offset_hour;

import type { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import type { QueryProject } from '../query_kind.ts';
import type { DateRange } from './schema.ts';

export type Interval = 'minute' | 'hour' | 'day' | 'week' | 'month';

/** A range of time in the project's zone. */
export interface ResolvedRange {
  readonly interval: Interval;
  readonly from: DateTime;
  /** Inclusive. */
  readonly to: DateTime;
  /** Where the intervals of the range start, all of them in order. */
  readonly buckets: readonly DateTime[];
}

/** What dates are relative to. */
export interface DateContext {
  readonly project: QueryProject;
  readonly now: Date;
  /** When the project's first event was; null where there is none, or where `needsEarliest` says that nobody asks. */
  readonly earliest: Date | null;
}

/** Whether the range begins with the project's first event. */
export const needsEarliest = (range: DateRange | null | undefined): boolean => range?.date_from === 'all';

/** A range of a request with its bounds and intervals. @throws QueryInvalid for a date that cannot be read */
export function resolveRange(
  range: DateRange | null | undefined,
  interval: Interval,
  context: DateContext,
  attr = 'query__dateRange',
): ResolvedRange {
  throw new Error(`Not built yet: ${attr} ${interval} ${String(range)} ${context.project.timezone}`);
}

/**
 * The range that another one is compared with: as long and directly before it, or moved by `compareTo`, such as `-1w`.
 * @throws QueryInvalid for a `compareTo` that cannot be read
 */
export function previousRange(
  range: DateRange | null | undefined,
  compareTo: string | null,
  resolved: ResolvedRange,
  context: DateContext,
): ResolvedRange {
  throw new Error(
    `Not built yet: ${String(compareTo)} ${String(range)} ${resolved.interval} ${context.project.timezone}`,
  );
}

/** The end of a range that is over for good: an absolute date that has passed; else null. */
export function closedEnd(
  range: DateRange | null | undefined,
  interval: Interval,
  project: QueryProject,
  now: Date,
): Date | null {
  if (!range?.date_to) return null;
  throw new Error(`Not built yet: ${interval} ${project.timezone} ${now.toISOString()}`);
}

/** That an event lies in a range. */
export function rangeCondition(range: ResolvedRange): Expression {
  throw new Error(`Not built yet: ${range.interval}`);
}

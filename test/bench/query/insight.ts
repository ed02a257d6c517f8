import type { QueryOutput } from '../../../src/queries/query_kind.ts';

/** Project and time of an insight. */
export interface InsightRange {
  readonly teamId: number;
  /** The current time for exportd; the newest event is slightly older. */
  readonly now: Date;
}

/** A hand-written statement with its parameters. */
export interface FloorStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A typical insight, as a request and as the best SQL that we know for the same result. */
export interface Insight {
  readonly name: string;
  /** The field `query` of the request. */
  query(range: InsightRange): Readonly<Record<string, unknown>>;
  floor(range: InsightRange): FloorStatement;
  /** The part of exportd's result that the statement returns too, as JSON. */
  actualOf(output: QueryOutput): unknown;
  /** The same from the rows of the statement, whose values are text. */
  expectedOf(rows: readonly (readonly (string | null)[])[], range: InsightRange): unknown;
}

/** Milliseconds of a day. */
export const dayMs = 86_400_000;

/** The start of a day in UTC, some days before now. */
const dayBefore = ({ now }: InsightRange, days: number): Date =>
  new Date(Math.floor(now.getTime() / dayMs) * dayMs - days * dayMs);

/** The last days including today, as fields of a request and as bounds of a statement. */
export function lastDays(
  range: InsightRange,
  days: number,
): {
  readonly dateRange: { readonly date_from: string; readonly date_to: string };
  readonly from: Date;
  /** Exclusive. */
  readonly end: Date;
  /** `YYYY-MM-DD` of each. */
  readonly days: readonly string[];
} {
  const dayOf = (date: Date): string => date.toISOString().slice(0, 10);
  const all = Array.from({ length: days }, (_, index) => dayOf(dayBefore(range, days - 1 - index)));
  const from = dayBefore(range, days - 1);
  return {
    dateRange: { date_from: dayOf(from), date_to: dayOf(dayBefore(range, 0)) },
    from,
    end: dayBefore(range, -1),
    days: all,
  };
}

/**
 * SQL for the start of an event's day or week in UTC: a division, which is faster than date_trunc with a time zone.
 */
export const startOf = (unit: 'day' | 'week'): string =>
  `date_bin('${unit === 'day' ? 1 : 7} days', timestamp, '2001-01-01T00:00:00Z')`;

/** SQL for the events of the project `$1` with their merged persons. */
export const eventsOfPersons = `(
    select event, timestamp, properties, coalesce(mapping.person_id, stored.person_id) as person_id
    from public.events as stored left join public.person_distinct_ids as mapping
      on mapping.team_id = $1 and mapping.distinct_id = stored.distinct_id and not mapping.is_deleted
    where stored.team_id = $1
  ) as events`;

/** Counts by day as a series over all days. */
export function lineOf(
  days: readonly string[],
  rows: readonly (readonly (string | null)[])[],
): readonly number[] {
  const byDay = new Map(rows.map(([day, count]) => [day?.slice(0, 10), Number(count)]));
  return days.map((day) => byDay.get(day) ?? 0);
}

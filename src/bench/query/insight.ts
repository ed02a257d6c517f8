import type { QueryAnswer } from '../../queries/query_kind.ts';

/** What a statement and a query are about. */
export interface InsightRange {
  readonly teamId: number;
  /** The time that the product takes for now; the newest event is a little older. */
  readonly now: Date;
}

/** A statement written by hand, with its values. */
export interface FloorStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A question that products often ask, as a request and as the best SQL that we know for the same answer. */
export interface Insight {
  readonly name: string;
  /** The member `query` of a request. */
  query(range: InsightRange): Readonly<Record<string, unknown>>;
  floor(range: InsightRange): FloorStatement;
  /** What of the product's answer the statement gives as well, as JSON. */
  answerOf(answer: QueryAnswer): unknown;
  /** The same made of the statement's rows, whose values are PostgreSQL's texts. */
  expectedOf(rows: readonly (readonly (string | null)[])[], range: InsightRange): unknown;
}

const dayMs = 86_400_000;

/** The beginning of a day in UTC, some days before now. */
const dayBefore = ({ now }: InsightRange, days: number): Date =>
  new Date(Math.floor(now.getTime() / dayMs) * dayMs - days * dayMs);

/** Days, today the last of them, as a request names them and as bounds of a statement. */
export function lastDays(
  range: InsightRange,
  days: number,
): {
  readonly dateRange: { readonly date_from: string; readonly date_to: string };
  readonly from: Date;
  /** The first moment behind. */
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
 * When the day or the week in UTC began that an event lies in: a division, which is quicker than a look into the calendar
 * of a zone.
 */
export const beginOf = (unit: 'day' | 'week'): string =>
  `date_bin('${unit === 'day' ? 1 : 7} days', timestamp, '2001-01-01T00:00:00Z')`;

/** Numbers by day as a line over all of these days. */
export function lineOf(
  days: readonly string[],
  rows: readonly (readonly (string | null)[])[],
): readonly number[] {
  const byDay = new Map(rows.map(([day, count]) => [day?.slice(0, 10), Number(count)]));
  return days.map((day) => byDay.get(day) ?? 0);
}

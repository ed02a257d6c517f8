import { type ResolvedRange, earliestFor, previousRange, resolveRange } from '../dates.ts';
import type { DialectReader } from '../dialect_reader.ts';
import type { QueryProject } from '../query_kind.ts';
import type { TrendsQuery } from './schema.ts';

/** The range of a query, or the one that it is compared with. */
export interface Period {
  readonly name: 'current' | 'previous';
  readonly range: ResolvedRange;
}

/** What date ranges are resolved with. */
export interface PeriodContext {
  readonly project: QueryProject;
  readonly now: Date;
  readonly reader: DialectReader;
}

/** The ranges of a query, the current one first. @throws QueryError */
export async function periodsOf(
  query: Pick<TrendsQuery, 'dateRange' | 'interval' | 'compareFilter'>,
  { project, now, reader }: PeriodContext,
): Promise<readonly [Period, ...Period[]]> {
  const { dateRange, interval, compareFilter } = query;
  const earliest = await earliestFor(dateRange, reader);
  const context = { project, now, earliest };
  const range = resolveRange(dateRange, interval, context);
  const current: Period = { name: 'current', range };
  if (!compareFilter?.compare) return [current];
  const before = previousRange(dateRange, compareFilter.compare_to ?? null, range, context);
  return [current, { name: 'previous', range: before }];
}

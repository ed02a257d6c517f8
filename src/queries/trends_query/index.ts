import { breakdownCohorts, checkCohorts } from '../cohorts.ts';
import { rangeFreshness } from '../dates.ts';
import { openDialectReader } from '../dialect_reader.ts';
import { overriddenInsight } from '../query_fields.ts';
import type { QueryContext, QueryKind, QueryOutput } from '../query_kind.ts';
import { checkExpressions } from './check_expressions.ts';
import { formulasOf } from './formula.ts';
import { checkPoints } from './lines.ts';
import { periodsOf } from './periods.ts';
import { readPeriod } from './read_lines.ts';
import { itemsOf } from './results.ts';
import { type TrendsQuery, normalizeForCache, trendsQuerySchema } from './schema.ts';

/** Runs a query: first for the current range, then for the one that it is compared with. @throws QueryError */
async function runTrends(query: TrendsQuery, context: QueryContext): Promise<QueryOutput> {
  const formulas = formulasOf(query);
  const reader = await openDialectReader(context);
  checkExpressions(query, context.project, reader);
  await checkCohorts(query, reader);
  const cohorts = await breakdownCohorts(query.breakdownFilter, reader);
  const periods = await periodsOf(query, { ...context, reader });
  const results: Record<string, unknown>[] = [];
  const printed: string[] = [];
  let hasMore = false;
  let points = 0;
  for (const period of periods) {
    const read = await readPeriod(query, formulas, period, { ...context, reader, cohorts });
    points += read.length * read.linesBySeries.flat().length;
    checkPoints(points, read.length);
    results.push(...itemsOf(query, formulas, period, { ...read, project: context.project, cohorts }));
    printed.push(...read.printed);
    hasMore ||= read.hasOther;
  }
  const [{ range: current }] = periods;
  return {
    results,
    hasMore,
    dialect_query: printed.join(';\n'),
    more: { resolved_date_range: { date_from: current.from.toISO(), date_to: current.to.toISO() } },
  };
}

/** Aggregates of events over time. */
export const trendsQueryKind: QueryKind<TrendsQuery> = {
  kind: 'TrendsQuery',
  schema: trendsQuerySchema,
  freshness: rangeFreshness,
  variables: () => [],
  override: overriddenInsight,
  normalizeForCache: normalizeForCache,
  run: runTrends,
};

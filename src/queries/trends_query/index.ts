import type { Query } from '@exportd/dialect/ast';
import type { Relations } from '../../source/relations.ts';
import { rangeFreshness, type ResolvedRange } from '../dates.ts';
import { type DialectReader, openDialectReader } from '../dialect_reader.ts';
import { overriddenInsight } from '../query_fields.ts';
import type { QueryContext, QueryKind, QueryOutput } from '../query_kind.ts';
import {
  formulaLines,
  formulasOf,
  type NamedFormula,
  checkPoints,
  isOther,
  type Line,
  linesOf,
  maxPoints,
  scaleSample,
  transformLine,
  axisOf,
  countOf,
  periodsOf,
  resultOf,
} from './lines.ts';
import { checkExpressions, attrOf, type SeriesPosition } from './selects.ts';
import { displayFormOf, normalizeForCache, type TrendsQuery, trendsQuerySchema } from './schema.ts';
import { planSeries, seriesStatement, type SeriesStatement, topValuesOfAny } from './statement.ts';

/** Runs a query: first for the current range, then for the one that it is compared with. @throws QueryError */
async function runTrends(
  query: TrendsQuery,
  context: QueryContext,
  relations: Relations,
): Promise<QueryOutput> {
  const formulas = formulasOf(query);
  const display = displayFormOf(query.trendsFilter?.display);
  const reader = await openDialectReader(context, relations);
  checkExpressions(query, context.project, reader);
  const periods = await periodsOf(query, { ...context, reader });
  const results: Record<string, unknown>[] = [];
  const printed: string[] = [];
  let hasOther = false;
  let points = 0;
  for (const unnamed of periods) {
    const period = { ...unnamed, ...axisOf(unnamed, query) };
    const bySeries: (readonly Line[])[] = [];
    for (const read of await readAll(query, formulas, { range: period.range, reader, context })) {
      printed.push(read.printed);
      hasOther ||= read.lines.some(isOther);
      bySeries.push(resultLines(read.lines, query));
    }
    const length = display === 'totalValue' ? 1 : period.range.buckets.length;
    points += length * bySeries.reduce((sum, lines) => sum + lines.length, 0);
    checkPoints(points, length);
    if (formulas.length === 0)
      for (const [order, lines] of bySeries.entries()) {
        const source = { order: order, series: query.series[order] ?? null, label: null };
        results.push(...lines.map((line) => resultOf(line, source, period, query)));
      }
    for (const [order, formula] of formulas.entries()) {
      const source = { order: order, series: null, label: formula.label };
      const lines = formulaLines(formula, bySeries, length, (data) => countOf(display, data));
      results.push(...lines.map((line) => resultOf(line, source, period, query)));
    }
  }
  const [{ range: current }] = periods;
  return {
    results,
    hasMore: hasOther,
    dialect_query: printed.join(';\n'),
    more: {
      resolved_date_range: {
        date_from: current.from.toISO(),
        date_to: current.to.toISO(),
      },
    },
  };
}

interface ReadSeries {
  readonly lines: readonly Line[];
  readonly printed: string;
}

/**
 * The lines of all series. The series of a formula share their top values; otherwise a value that one series merges
 * into all others would be 0 there.
 */
async function readAll(
  query: TrendsQuery,
  formulas: readonly NamedFormula[],
  { range, reader, context }: { range: ResolvedRange; reader: DialectReader; context: QueryContext },
): Promise<readonly ReadSeries[]> {
  const positions = query.series.map((series, index) => ({ query, series, index, project: context.project }));
  const plans: SeriesStatement[] = [];
  for (const position of positions) plans.push(await planSeries(position, range, reader));
  const read = async (topValuesQuery: Query | null): Promise<readonly ReadSeries[]> => {
    const all: ReadSeries[] = [];
    for (const [index, position] of positions.entries()) {
      const plan = plans[index];
      if (plan) all.push(await readSeries(position, { ...plan, topValuesQuery }, range, reader));
    }
    return all;
  };
  const byEach = await read(null);
  const used = plans.filter((_, index) => formulas.some(({ series }) => series.includes(index)));
  const isCut = byEach.some(({ lines }) => lines.some(isOther));
  return used.length > 1 && isCut ? read(topValuesOfAny(used)) : byEach;
}

async function readSeries(
  position: SeriesPosition,
  plan: SeriesStatement,
  range: ResolvedRange,
  reader: DialectReader,
): Promise<ReadSeries> {
  const { keys, aggregation, limit, topValuesQuery } = plan;
  const days = typeof aggregation === 'string' ? 0 : aggregation.days * 2;
  const values = topValuesQuery === null ? limit : limit * position.query.series.length;
  const lineCount = keys.values.length === 0 ? 1 : values + 1;
  const intervals = range.buckets.length + days + 1;
  // One interval more, because intervals without events have no rows.
  const most = Math.min(intervals * lineCount, maxPoints + intervals);
  const read = await reader.read(seriesStatement(plan), {
    rows: { defaultLimit: most, maxRows: most },
    attr: attrOf(position),
  });
  if (read.hasMore) checkPoints(Infinity, range.buckets.length);
  const form = {
    range,
    count: keys.values.length,
    isTotal: keys.bucket === null,
    isChange: typeof aggregation !== 'string',
  };
  const lines = scaleSample(linesOf(read, form), position);
  return { lines, printed: read.statement.printed };
}

/** The lines of a series as returned in results. */
function resultLines(
  lines: readonly Line[],
  { breakdownFilter, trendsFilter }: TrendsQuery,
): readonly Line[] {
  const display = displayFormOf(trendsFilter?.display);
  return lines
    .filter((line) => !(breakdownFilter?.breakdown_hide_other_aggregation && isOther(line)))
    .map((line) => transformLine(line, display, trendsFilter?.smoothingIntervals));
}

/** Aggregates of events over time. */
export const trendsQueryKind = (relations: Relations): QueryKind<TrendsQuery> => ({
  kind: 'TrendsQuery',
  schema: trendsQuerySchema,
  freshness: rangeFreshness,
  variables: () => [],
  override: overriddenInsight,
  normalizeForCache: normalizeForCache,
  run: (query, context) => runTrends(query, context, relations),
});

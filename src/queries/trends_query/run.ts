import type { Query } from '../../dialect/ast.ts';
import type { Relations } from '../../source/relations.ts';
import type { ResolvedRange } from '../dates/date_range.ts';
import { openDialectReader, type DialectReader } from '../dialect_reader.ts';
import type { QueryAnswer, QueryContext } from '../query_kind.ts';
import { checkExpressions } from './checked_expressions.ts';
import { formulaLines, formulasOf, type NamedFormula } from './formulas.ts';
import { isOther, linesOf, type Line } from './lines.ts';
import { linesOfAll } from './lines_of_all.ts';
import { periodsOf } from './periods.ts';
import { countOf, resultOf } from './results.ts';
import { displayFormOf, type TrendsQuery } from './schema.ts';
import { planSeries } from './series_plan.ts';
import { attrOf, type SeriesPlace } from './series_events.ts';
import { shownLine } from './shown_lines.ts';
import { keptByAny, seriesStatement, type SeriesStatement } from './statement.ts';

/** Computes a query: the current range first, then the one that it is compared with. @throws QueryInvalid */
export async function runTrends(
  query: TrendsQuery,
  context: QueryContext,
  relations: Relations,
): Promise<QueryAnswer> {
  const formulas = formulasOf(query);
  const display = displayFormOf(query.trendsFilter?.display);
  const reader = await openDialectReader(context, relations);
  checkExpressions(query, context.project, reader);
  const periods = await periodsOf(query, { ...context, reader });
  const results: Record<string, unknown>[] = [];
  const printed: string[] = [];
  let hasOther = false;
  for (const period of periods) {
    const bySeries: (readonly Line[])[] = [];
    for (const read of await readAll(query, formulas, { range: period.range, reader, context })) {
      printed.push(read.printed);
      hasOther ||= read.lines.some(isOther);
      bySeries.push(shownLines(read.lines, query));
    }
    const length = display === 'totalValue' ? 1 : period.range.buckets.length;
    if (formulas.length === 0)
      for (const [order, lines] of bySeries.entries()) {
        const source = { order, series: query.series[order] ?? null, label: null };
        results.push(...lines.map((line) => resultOf(line, source, period, query)));
      }
    for (const [order, formula] of formulas.entries()) {
      const source = { order, series: null, label: formula.label };
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
 * The lines of all series. Those of a formula have the values that any of its series keeps: a value that another series
 * has among all others would count as 0 there.
 */
async function readAll(
  query: TrendsQuery,
  formulas: readonly NamedFormula[],
  { range, reader, context }: { range: ResolvedRange; reader: DialectReader; context: QueryContext },
): Promise<readonly ReadSeries[]> {
  const places = query.series.map((series, index) => ({ query, series, index, project: context.project }));
  const plans: SeriesStatement[] = [];
  for (const place of places) plans.push(await planSeries(place, range, reader));
  const read = async (kept: Query | null): Promise<readonly ReadSeries[]> => {
    const all: ReadSeries[] = [];
    for (const [index, place] of places.entries()) {
      const plan = plans[index];
      if (plan) all.push(await readSeries(place, { ...plan, kept }, range, reader));
    }
    return all;
  };
  const byEach = await read(null);
  const used = plans.filter((_, index) => formulas.some(({ series }) => series.includes(index)));
  const isCut = byEach.some(({ lines }) => lines.some(isOther));
  return used.length > 1 && isCut ? read(keptByAny(used)) : byEach;
}

async function readSeries(
  place: SeriesPlace,
  plan: SeriesStatement,
  range: ResolvedRange,
  reader: DialectReader,
): Promise<ReadSeries> {
  const { keys, counted, limit, kept } = plan;
  const days = typeof counted === 'string' ? 0 : counted.days * 2;
  const values = kept === null ? limit : limit * place.query.series.length;
  const lineCount = keys.values.length === 0 ? 1 : values + 1;
  const most = (range.buckets.length + days + 1) * lineCount;
  const read = await reader.read(seriesStatement(plan), {
    rows: { fallback: most, most },
    attr: attrOf(place),
  });
  const form = {
    range,
    count: keys.values.length,
    isTotal: keys.bucket === null,
    isChange: typeof counted !== 'string',
  };
  const lines = linesOfAll(linesOf(read, form), place);
  return { lines, printed: read.statement.printed };
}

/** The lines of a series as they are answered. */
function shownLines(lines: readonly Line[], { breakdownFilter, trendsFilter }: TrendsQuery): readonly Line[] {
  const display = displayFormOf(trendsFilter?.display);
  return lines
    .filter((line) => !(breakdownFilter?.breakdown_hide_other_aggregation && isOther(line)))
    .map((line) => shownLine(line, display, trendsFilter?.smoothingIntervals));
}

import type { Query } from '@exportd/dialect/ast';
import { type BreakdownCohort, everyone } from '../cohorts.ts';
import type { DialectReader } from '../dialect_reader.ts';
import type { NamedFormula } from './formula.ts';
import { type Line, checkPoints, isOther, linesOf, maxPoints, shownLines } from './lines.ts';
import type { Period, PeriodContext } from './periods.ts';
import type { TrendsQuery } from './schema.ts';
import { attrOf } from './series.ts';
import { type SeriesPlan, planSeries } from './series_plan.ts';
import { seriesStatement, topValuesOfAny } from './statement.ts';

/** The lines of all series in one range. */
export interface ReadPeriod {
  readonly linesBySeries: readonly (readonly Line[])[];
  /** How many numbers each of them has. */
  readonly length: number;
  /** Whether values were merged into a line of all others. */
  readonly hasOther: boolean;
  /** The statements in the dialect. */
  readonly printed: readonly string[];
}

interface ReadContext extends Pick<PeriodContext, 'project' | 'reader'> {
  /** The cohorts that the query is broken down by; null for none. */
  readonly cohorts: readonly BreakdownCohort[] | null;
}

/**
 * Reads all series over one range, and each for each cohort of a breakdown. The series of a formula share their top values; otherwise a value that one series merges
 * into all others would be 0 there.
 * @throws QueryError
 */
export async function readPeriod(
  query: TrendsQuery,
  formulas: readonly NamedFormula[],
  { range }: Period,
  { project, reader, cohorts }: ReadContext,
): Promise<ReadPeriod> {
  const plans: SeriesPlan[] = [];
  for (const [index, series] of query.series.entries())
    for (const { id: cohort } of cohorts ?? [{ id: null }])
      plans.push(await planSeries({ query, series, index, project, cohort }, range, reader));
  const byEach = await readAll(plans, null, reader);
  const ofFormulas = plans.filter(({ position: { index } }) =>
    formulas.some(({ series }) => series.includes(index)),
  );
  const isCut = byEach.some(({ lines }) => lines.some(isOther));
  const read =
    ofFormulas.length > 1 && isCut ? await readAll(plans, topValuesOfAny(ofFormulas), reader) : byEach;
  const linesOfPlans = read.map(({ lines }, at) => {
    const shown = shownLines(lines, query);
    const values = [String(plans[at]?.position.cohort ?? everyone)];
    return cohorts === null ? shown : shown.map((line) => ({ ...line, values }));
  });
  return {
    linesBySeries: query.series.map((_, index) =>
      linesOfPlans.filter((__, at) => plans[at]?.position.index === index).flat(),
    ),
    length: Math.max(...plans.map(({ question }) => question.length)),
    hasOther: read.some(({ lines }) => lines.some(isOther)),
    printed: read.map(({ printed }) => printed),
  };
}

interface ReadSeries {
  readonly lines: readonly Line[];
  readonly printed: string;
}

async function readAll(
  plans: readonly SeriesPlan[],
  topValuesQuery: Query | null,
  reader: DialectReader,
): Promise<readonly ReadSeries[]> {
  const all: ReadSeries[] = [];
  for (const plan of plans) all.push(await readSeries(plan, topValuesQuery, reader));
  return all;
}

async function readSeries(
  plan: SeriesPlan,
  topValuesQuery: Query | null,
  reader: DialectReader,
): Promise<ReadSeries> {
  const { position, keys, limit, question, range } = plan;
  const values = topValuesQuery === null ? limit : limit * position.query.series.length;
  const lines = keys.values.length === 0 ? 1 : values + 1;
  const most = Math.min(question.rowsPerLine * lines, maxPoints + question.rowsPerLine);
  const read = await reader.read(seriesStatement(plan, topValuesQuery), {
    rows: { defaultLimit: most, maxRows: most },
    attr: attrOf(position),
  });
  if (read.hasMore) checkPoints(Infinity, range.buckets.length);
  return { lines: linesOf(read, plan), printed: read.statement.printed };
}

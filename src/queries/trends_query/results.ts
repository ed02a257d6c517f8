import { type BreakdownCohort, everyone } from '../cohorts.ts';
import { dayOf, labelOf } from '../buckets.ts';
import { seriesName } from '../nodes.ts';
import type { QueryProject } from '../query_kind.ts';
import { breakdownLabel } from './breakdown.ts';
import type { Formula, NamedFormula } from './formula.ts';
import { type Line, sortedLines, sum } from './lines.ts';
import type { Period } from './periods.ts';
import type { ReadPeriod } from './read_lines.ts';
import { type DisplayForm, type TrendsQuery, type TrendsSeries, displayFormOf } from './schema.ts';

interface ItemContext extends Pick<ReadPeriod, 'linesBySeries' | 'length'> {
  readonly project: Pick<QueryProject, 'actions'>;
  /** The cohorts that the query is broken down by; null for none. */
  readonly cohorts: readonly BreakdownCohort[] | null;
}

/** The items of `results` for one range: one of each line, of the series or of the formulas. */
export function itemsOf(
  query: TrendsQuery,
  formulas: readonly NamedFormula[],
  period: Period,
  { linesBySeries, length, project, cohorts }: ItemContext,
): readonly Record<string, unknown>[] {
  const display = displayFormOf(query.trendsFilter?.display);
  const named = { ...period, ...axisOf(period, query), project, cohorts };
  const ofLines = (lines: readonly Line[], source: LineSource): readonly Record<string, unknown>[] =>
    lines.map((line) => resultOf(line, source, named, query));
  if (formulas.length === 0)
    return linesBySeries.flatMap((lines, order) =>
      ofLines(lines, { order, series: query.series[order] ?? null, label: null }),
    );
  return formulas.flatMap((formula, order) => {
    const lines = formulaLines(formula, linesBySeries, length, (data) => countOf(display, data));
    return ofLines(lines, { order, series: null, label: formula.label });
  });
}

/**
 * The lines of a formula: one for each breakdown value of any of its series. A series without that value is 0.
 * @param length of each line
 * @param totalOf the value that lines are sorted by
 */
function formulaLines(
  { series, evaluate }: Formula,
  linesBySeries: readonly (readonly Line[])[],
  length: number,
  totalOf: (data: readonly number[]) => number,
): readonly Line[] {
  const used = series.length === 0 ? linesBySeries.map((_, index) => index) : series;
  const byValues = new Map<string, Map<number, Line>>();
  for (const index of used)
    for (const line of linesBySeries[index] ?? []) {
      const key = JSON.stringify(line.values);
      const lines = byValues.get(key) ?? new Map<number, Line>();
      byValues.set(key, lines.set(index, line));
    }
  const lines = [...byValues.values()].map((bySeries): Line => {
    const values = [...bySeries.values()][0]?.values ?? [];
    const data = Array.from({ length }, (_, point) =>
      evaluate((index) => bySeries.get(index)?.data[point] ?? 0),
    );
    return { values, data };
  });
  return sortedLines(lines, totalOf);
}

/** The series or formula of a line. */
interface LineSource {
  readonly order: number;
  readonly series: TrendsSeries | null;
  /** The label of a formula; null for a series. */
  readonly label: string | null;
}

/** The names of a period's intervals, which all of its lines share; empty for totals. */
interface Axis {
  readonly days: readonly string[];
  readonly labels: readonly string[];
}

function axisOf({ range }: Period, query: TrendsQuery): Axis {
  if (displayFormOf(query.trendsFilter?.display) === 'totalValue') return { days: [], labels: [] };
  const { interval, buckets } = range;
  return {
    days: buckets.map((bucket) => dayOf(bucket, interval)),
    labels: buckets.map((bucket) => labelOf(bucket, interval, range)),
  };
}

/** One item of a query's `results`. */
function resultOf(
  line: Line,
  source: LineSource,
  period: Period & Axis & Pick<ItemContext, 'project' | 'cohorts'>,
  query: TrendsQuery,
): Record<string, unknown> {
  const display = displayFormOf(query.trendsFilter?.display);
  const isTotal = display === 'totalValue';
  const { days, labels, project, cohorts } = period;
  const data = isTotal ? [] : line.data;
  return {
    action: source.series === null ? null : actionOf(source.series, source.order, days, project),
    order: source.order,
    label: labelOfLine(line, source, period, query.series.length > 1),
    count: countOf(display, data),
    data,
    labels,
    days,
    ...(isTotal && { aggregated_value: line.data[0] ?? 0 }),
    ...(line.values.length > 0 && { breakdown_value: breakdownValueOf(line, query, cohorts) }),
    ...(query.compareFilter?.compare && { compare: true, compare_label: period.name }),
    filter: filterOf(query),
  };
}

/** The total of a line; the last point of a cumulative line. */
const countOf = (display: DisplayForm, data: readonly number[]): number =>
  display === 'cumulative' ? (data.at(-1) ?? 0) : sum(data);

function labelOfLine(
  { values }: Line,
  { series, label }: LineSource,
  { project, cohorts }: Pick<ItemContext, 'project' | 'cohorts'>,
  several: boolean,
): string {
  if (label !== null) return label;
  const events = series === null ? '' : seriesName({ ...series, name: null }, project);
  if (values.length === 0) return events;
  const value =
    cohorts?.find(({ id }) => String(id ?? everyone) === values[0])?.name ?? breakdownLabel(values);
  return several ? `${events} - ${value}` : value;
}

/** A list if the query uses the field `breakdowns`. */
function breakdownValueOf(
  { values }: Line,
  { breakdownFilter }: TrendsQuery,
  cohorts: ItemContext['cohorts'],
): unknown {
  const shown =
    cohorts === null ? values : values.map((value) => (value === everyone ? value : Number(value)));
  return breakdownFilter?.breakdowns?.length ? shown : shown[0];
}

const actionOf = (
  series: TrendsSeries,
  order: number,
  days: readonly string[],
  project: ItemContext['project'],
): Record<string, unknown> => ({
  id: series.kind === 'ActionsNode' ? series.id : (series.event ?? null),
  name: seriesName(series, project),
  custom_name: series.custom_name ?? null,
  type: series.kind === 'ActionsNode' ? 'actions' : 'events',
  order: order,
  math: series.math,
  math_property: series.math_property ?? null,
  math_hogql: series.math_hogql ?? null,
  math_group_type_index: series.math_group_type_index ?? null,
  days,
  properties: series.properties ?? [],
});

/** A summary of the query's options. */
const filterOf = ({
  interval,
  dateRange,
  breakdownFilter,
  compareFilter,
  filterTestAccounts,
}: TrendsQuery): Record<string, unknown> => ({
  insight: 'TRENDS',
  interval,
  date_from: dateRange?.date_from ?? null,
  date_to: dateRange?.date_to ?? null,
  filter_test_accounts: filterTestAccounts,
  compare: compareFilter?.compare ?? false,
  breakdown: breakdownFilter?.breakdown ?? null,
  breakdown_type: breakdownFilter?.breakdown_type ?? null,
  breakdowns: breakdownFilter?.breakdowns ?? null,
});

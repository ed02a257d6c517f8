import type { Expression, From, Query, Select } from '../../dialect/ast.ts';
import { buildDerivedTable, buildExpression, buildTable } from '../../dialect/ast_builders.ts';
import type { ResolvedRange } from '../dates/resolved_range.ts';
import { activeChanges, sumOfChanges } from './active_windows.ts';
import { joinTopValues, withOtherValue, topValueColumns, topValues, sumOfResults } from './top_values.ts';
import { firstIntervals, measureResults, measureRows, otherRows } from './measure_rows.ts';
import type { Measure, PartialMeasure, WholeMeasure } from './measures.ts';
import { selectFromEvents, type SeriesEvents } from './series_events.ts';
import { fieldsNamed, buildNamedSelect, unionOf } from './selects.ts';
import { keyColumns, keyNames, type LineKeys, resultColumn } from './value_columns.ts';

/** The statement of one series, which computes all of its lines. */
export interface SeriesStatement {
  readonly measure: Measure;
  readonly keys: LineKeys;
  readonly events: SeriesEvents;
  /** How many values have a separate line. */
  readonly limit: number;
  /** A query for these values if they are not the largest of this series alone; see {@link topValuesOfAny}. */
  readonly topValuesQuery: Query | null;
  /**
   * How rows are aggregated: for each interval; each actor only in its first interval; or actors active in a window of
   * `days`.
   */
  readonly aggregation:
    | 'each interval'
    | 'first interval'
    | { readonly days: number; readonly range: ResolvedRange };
}

const rowsName = 'trend_rows';
const resultsName = 'results_of_values';
const topValuesName = 'kept_values';

/** A query of the keys and `result`. For active windows, `result` is the change from day to day. */
export function seriesStatement(series: SeriesStatement): Query {
  const { measure } = series;
  return measure.form === 'whole' ? wholeStatement(series, measure) : partialStatement(series, measure);
}

/** The values of a series with a separate line, as rows with one column per breakdown. */
export function topValuesOfSeries(series: SeriesStatement): Select {
  const { measure, keys, events, limit } = series;
  const count = keys.values.length;
  if (measure.form === 'whole')
    return topValues(
      buildDerivedTable(wholeResults(series, measure, keys.values), resultsName),
      count,
      limit,
      sumOfFinite,
    );
  const rows = buildDerivedTable(measureRows(measure, keys, events), rowsName);
  return topValues(
    buildDerivedTable(resultsOf(series, measure, rows), resultsName),
    count,
    limit,
    totalOf(series),
  );
}

/** The values that have a separate line in any of several series. */
export function topValuesOfAny(series: readonly SeriesStatement[]): Query {
  const columns = topValueColumns(series[0]?.keys.values.length ?? 0);
  const from = buildDerivedTable(unionOf(series.map(topValuesOfSeries)), 'kept_of_series');
  return buildNamedSelect(fieldsNamed(columns), { from, groupBy: columns });
}

const sumOfFinite = buildExpression(`sum(isFinite(toFloat(${resultColumn})) ? toFloat(${resultColumn}) : 0)`);

function wholeResults(
  { keys, events }: SeriesStatement,
  { direct }: WholeMeasure,
  values: readonly Expression[],
): Select {
  const columns = { ...keyColumns({ ...keys, values }), [resultColumn]: direct };
  return selectFromEvents(columns, events, keyNames(keys));
}

function wholeStatement(series: SeriesStatement, measure: WholeMeasure): Select {
  const { values } = series.keys;
  if (values.length === 0) return wholeResults(series, measure, []);
  return wholeResults(
    series,
    measure,
    withOtherValue(values, series.topValuesQuery ?? topValuesOfSeries(series)),
  );
}

function partialStatement(series: SeriesStatement, measure: PartialMeasure): Query {
  const { keys, events, limit } = series;
  const count = keys.values.length;
  if (count === 0 && measure.direct !== null && series.aggregation === 'each interval')
    return selectFromEvents({ ...keyColumns(keys), [resultColumn]: measure.direct }, events, keyNames(keys));
  const rows = measureRows(measure, keys, events);
  if (count === 0) return resultsOf(series, measure, buildDerivedTable(rows, rowsName));
  const results = resultsOf(series, measure, buildTable(rowsName));
  const topValuesQuery =
    series.topValuesQuery ?? topValues(buildTable(resultsName), count, limit, totalOf(series));
  const ofTopValues = buildNamedSelect(fieldsNamed([...keyNames(keys), resultColumn]), {
    from: joinTopValues('inner', resultsName, topValuesName, count),
    queries: { [rowsName]: rows, [resultsName]: results, [topValuesName]: topValuesQuery },
  });
  const others = otherRows(measure, keys, joinTopValues('left', rowsName, topValuesName, count));
  return unionOf([ofTopValues, resultsOf(series, measure, buildDerivedTable(others, 'other_rows'))]);
}

function resultsOf({ aggregation, keys }: SeriesStatement, measure: PartialMeasure, rows: From): Select {
  if (aggregation === 'each interval') return measureResults(measure, keys, rows);
  if (aggregation === 'first interval') return firstIntervals(keys, rows);
  return activeChanges(rows, aggregation.days, keys.values.length);
}

const totalOf = ({ aggregation }: SeriesStatement): Expression =>
  typeof aggregation === 'string' ? sumOfResults : sumOfChanges(aggregation.range);

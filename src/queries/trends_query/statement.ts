import type { Expression, From, Query, Select } from '../../dialect/ast.ts';
import { derived, expressionOf, tableNamed } from '../../dialect/build.ts';
import type { ResolvedRange } from '../dates/date_range.ts';
import { activeChanges, sumOfChanges } from './active_windows.ts';
import { besideKept, foldedEvents, keptColumns, keptValues, sumOfResults } from './folding.ts';
import { firstIntervals, measureResults, measureRows, otherRows } from './measure_rows.ts';
import type { Measure, PartialMeasure, WholeMeasure } from './measures.ts';
import { overEvents, type SeriesEvents } from './series_events.ts';
import { sameColumns, selecting, unionOf } from './selects.ts';
import { keyColumns, keyNames, type LineKeys, resultColumn } from './value_columns.ts';

/** What one statement computes: all lines of one series. */
export interface SeriesStatement {
  readonly measure: Measure;
  readonly keys: LineKeys;
  readonly events: SeriesEvents;
  /** How many values have a line of their own. */
  readonly limit: number;
  /** Which values these are where they are not the largest of this series alone, as {@link keptByAny} gives them. */
  readonly kept: Query | null;
  /**
   * How a measure's rows amount to results: by itself; each actor in its first interval alone; or each active over so
   * many days.
   */
  readonly counted:
    'each interval' | 'first interval' | { readonly days: number; readonly range: ResolvedRange };
}

const rowsName = 'trend_rows';
const resultsName = 'results_of_values';
const keptName = 'kept_values';

/** One query of the keys and `result`; of active windows, `result` is how it changes from day to day. */
export function seriesStatement(asked: SeriesStatement): Query {
  const { measure } = asked;
  return measure.form === 'whole' ? wholeStatement(asked, measure) : partialStatement(asked, measure);
}

/** The values of a series that have a line of their own, as rows of one column for each breakdown. */
export function keptOfSeries(asked: SeriesStatement): Select {
  const { measure, keys, events, limit } = asked;
  const count = keys.values.length;
  if (measure.form === 'whole')
    return keptValues(
      derived(wholeResults(asked, measure, keys.values), resultsName),
      count,
      limit,
      sumOfFinite,
    );
  const rows = derived(measureRows(measure, keys, events), rowsName);
  return keptValues(derived(resultsOf(asked, measure, rows), resultsName), count, limit, totalOf(asked));
}

/** The values that have a line of their own in any of several series. */
export function keptByAny(series: readonly SeriesStatement[]): Query {
  const columns = keptColumns(series[0]?.keys.values.length ?? 0);
  const from = derived(unionOf(series.map(keptOfSeries)), 'kept_of_series');
  return selecting(sameColumns(columns), { from, groupBy: columns });
}

const sumOfFinite = expressionOf(`sum(isFinite(toFloat(${resultColumn})) ? toFloat(${resultColumn}) : 0)`);

function wholeResults(
  { keys, events }: SeriesStatement,
  { direct }: WholeMeasure,
  values: readonly Expression[],
): Select {
  const columns = { ...keyColumns({ ...keys, values }), [resultColumn]: direct };
  return overEvents(columns, events, keyNames(keys));
}

function wholeStatement(asked: SeriesStatement, measure: WholeMeasure): Select {
  const { values } = asked.keys;
  if (values.length === 0) return wholeResults(asked, measure, []);
  return wholeResults(asked, measure, foldedEvents(values, asked.kept ?? keptOfSeries(asked)));
}

function partialStatement(asked: SeriesStatement, measure: PartialMeasure): Query {
  const { keys, events, limit } = asked;
  const count = keys.values.length;
  if (count === 0 && measure.direct !== null && asked.counted === 'each interval')
    return overEvents({ ...keyColumns(keys), [resultColumn]: measure.direct }, events, keyNames(keys));
  const rows = measureRows(measure, keys, events);
  if (count === 0) return resultsOf(asked, measure, derived(rows, rowsName));
  const results = resultsOf(asked, measure, tableNamed(rowsName));
  const kept = asked.kept ?? keptValues(tableNamed(resultsName), count, limit, totalOf(asked));
  const ofKept = selecting(sameColumns([...keyNames(keys), resultColumn]), {
    from: besideKept('inner', resultsName, keptName, count),
    queries: { [rowsName]: rows, [resultsName]: results, [keptName]: kept },
  });
  const others = otherRows(measure, keys, besideKept('left', rowsName, keptName, count));
  return unionOf([ofKept, resultsOf(asked, measure, derived(others, 'other_rows'))]);
}

function resultsOf({ counted, keys }: SeriesStatement, measure: PartialMeasure, rows: From): Select {
  if (counted === 'each interval') return measureResults(measure, keys, rows);
  if (counted === 'first interval') return firstIntervals(keys, rows);
  return activeChanges(rows, counted.days, keys.values.length);
}

const totalOf = ({ counted }: SeriesStatement): Expression =>
  typeof counted === 'string' ? sumOfResults : sumOfChanges(counted.range);

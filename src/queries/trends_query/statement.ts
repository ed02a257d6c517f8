import type { Expression, From, Select } from '../../dialect/ast.ts';
import { derived, expressionOf } from '../../dialect/build.ts';
import type { ResolvedRange } from '../dates/date_range.ts';
import { activeChanges, sumOfChanges } from './active_windows.ts';
import { besideKept, foldedEvents, foldedValues, keptValues, sumOfResults } from './folding.ts';
import { firstIntervals, foldedRows, measureResults, measureRows } from './measure_rows.ts';
import type { Measure, PartialMeasure, WholeMeasure } from './measures.ts';
import { overEvents, type SeriesEvents } from './series_events.ts';
import { namedQueries, tableNamed } from './selects.ts';
import { keyColumns, keyNames, type LineKeys, resultColumn } from './value_columns.ts';

/** What one statement computes: all lines of one series. */
export interface SeriesStatement {
  readonly measure: Measure;
  readonly keys: LineKeys;
  readonly events: SeriesEvents;
  /** How many values have a line of their own. */
  readonly limit: number;
  /**
   * How a measure's rows amount to results: by itself; each actor in its first interval alone; or each active over so
   * many days.
   */
  readonly counted:
    'each interval' | 'first interval' | { readonly days: number; readonly range: ResolvedRange };
}

/** One SELECT of the keys and `result`; of active windows, `result` is how it changes from day to day. */
export function seriesStatement(asked: SeriesStatement): Select {
  const { measure } = asked;
  return measure.form === 'whole' ? wholeStatement(asked, measure) : partialStatement(asked, measure);
}

function wholeStatement({ keys, events, limit }: SeriesStatement, { direct }: WholeMeasure): Select {
  const results = (values: readonly Expression[]): Select => {
    const named = { ...keys, values };
    return overEvents({ ...keyColumns(named), [resultColumn]: direct }, events, keyNames(keys));
  };
  const count = keys.values.length;
  if (count === 0) return results([]);
  const finite = expressionOf(`sum(isFinite(toFloat(${resultColumn})) ? toFloat(${resultColumn}) : 0)`);
  return results(foldedEvents(keys.values, keptValues(results(keys.values), count, limit, finite)));
}

const rowsName = 'trend_rows';
const keptName = 'kept_values';

function partialStatement(asked: SeriesStatement, measure: PartialMeasure): Select {
  const { keys, events, limit } = asked;
  const count = keys.values.length;
  if (count === 0 && measure.direct !== null && asked.counted === 'each interval')
    return overEvents({ ...keyColumns(keys), [resultColumn]: measure.direct }, events, keyNames(keys));
  const rows = measureRows(measure, keys, events);
  if (count === 0) return resultsOf(asked, measure, derived(rows, rowsName));
  const kept = keptValues(resultsOf(asked, measure, tableNamed(rowsName)), count, limit, totalOf(asked));
  const folded = foldedRows(measure, keys, foldedValues(count), besideKept(rowsName, keptName, count));
  const statement = resultsOf(asked, measure, derived(folded, 'folded_rows'));
  const queries = namedQueries({ [rowsName]: rows, [keptName]: kept });
  return { ...statement, ctes: [...queries, ...statement.ctes] };
}

function resultsOf({ counted, keys }: SeriesStatement, measure: PartialMeasure, rows: From): Select {
  if (counted === 'each interval') return measureResults(measure, keys, rows);
  if (counted === 'first interval') return firstIntervals(keys, rows);
  return activeChanges(rows, counted.days, keys.values.length);
}

const totalOf = ({ counted }: SeriesStatement): Expression =>
  typeof counted === 'string' ? sumOfResults : sumOfChanges(counted.range);

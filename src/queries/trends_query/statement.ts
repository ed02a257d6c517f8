import type { Expression, From, Query, Select } from '../../dialect/ast.ts';
import { derived, expressionOf } from '../../dialect/build.ts';
import type { ResolvedRange } from '../dates/date_range.ts';
import { activeChanges, sumOfChanges } from './active_windows.ts';
import { besideKept, foldedEvents, foldedValues, isNotKept, keptValues, sumOfResults } from './folding.ts';
import {
  firstIntervals,
  measureResults,
  measureRows,
  mergedRows,
  renamedRows,
  sameRows,
} from './measure_rows.ts';
import { otherValue } from './breakdown_marks.ts';
import type { Measure, PartialMeasure, WholeMeasure } from './measures.ts';
import { overEvents, type SeriesEvents } from './series_events.ts';
import { namedQueries, tableNamed, unionOf } from './selects.ts';
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

const rowsName = 'trend_rows';
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
    return keptValues(wholeResults(asked, measure, keys.values), count, limit, sumOfFinite);
  const rows = derived(measureRows(measure, keys, events), rowsName);
  return keptValues(resultsOf(asked, measure, rows), count, limit, totalOf(asked));
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
  return wholeResults(asked, measure, foldedEvents(values, keptOfSeries(asked)));
}

function partialStatement(asked: SeriesStatement, measure: PartialMeasure): Query {
  const { keys, events, limit } = asked;
  const count = keys.values.length;
  if (count === 0 && measure.direct !== null && asked.counted === 'each interval')
    return overEvents({ ...keyColumns(keys), [resultColumn]: measure.direct }, events, keyNames(keys));
  const rows = measureRows(measure, keys, events);
  if (count === 0) return resultsOf(asked, measure, derived(rows, rowsName));
  const kept = keptValues(resultsOf(asked, measure, tableNamed(rowsName)), count, limit, totalOf(asked));
  const beside = (type: 'left' | 'inner'): From => besideKept(type, rowsName, keptName, count);
  const results = (made: Select): Select => resultsOf(asked, measure, derived(made, 'rows_of_lines'));
  const isActors = measure.actor !== null;
  const first = results(
    isActors
      ? sameRows(measure, keys, beside('inner'))
      : renamedRows(measure, keys, foldedValues(count), beside('left')),
  );
  const queries = namedQueries({ [rowsName]: rows, [keptName]: kept });
  const named = { ...first, ctes: [...queries, ...first.ctes] };
  if (!isActors) return named;
  // Only actors of other values can have several rows there, so that the others need not be grouped again.
  const others = mergedRows(measure, keys, expressionOf('{other}', { other: { value: otherValue } }), {
    from: beside('left'),
    where: isNotKept(),
  });
  return unionOf([named, results(others)]);
}

function resultsOf({ counted, keys }: SeriesStatement, measure: PartialMeasure, rows: From): Select {
  if (counted === 'each interval') return measureResults(measure, keys, rows);
  if (counted === 'first interval') return firstIntervals(keys, rows);
  return activeChanges(rows, counted.days, keys.values.length);
}

const totalOf = ({ counted }: SeriesStatement): Expression =>
  typeof counted === 'string' ? sumOfResults : sumOfChanges(counted.range);

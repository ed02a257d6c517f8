import type { Expression, From, Query, Select } from '@exportd/dialect/ast';
import {
  buildDerivedTable,
  buildExpression,
  buildField,
  buildTable,
  combineConditions,
} from '@exportd/dialect/ast_builders';
import { otherValue } from './breakdown.ts';
import { type LineKeys, actorColumn, bucketColumn, keyColumns, keyNames, resultColumn } from './line_keys.ts';
import type { PartialMeasure, WholeMeasure } from './measure.ts';
import { buildNamedSelect, fieldsNamed, unionOf } from './named_select.ts';
import type { SeriesEvents } from './series.ts';
import type { SeriesPlan } from './series_plan.ts';
import {
  isOutsideTopValues,
  joinTopValues,
  topValueColumns,
  topValues,
  withOtherValue,
} from './top_values.ts';

/**
 * A query of the keys and `result` of all lines of a series.
 * @param topValuesQuery of the values with a separate line, unless they are the largest of this series alone
 */
export function seriesStatement(plan: SeriesPlan, topValuesQuery: Query | null): Query {
  const { measure, keys } = plan;
  if (measure.form === 'partial') return partialStatement(plan, measure, topValuesQuery);
  if (keys.values.length === 0) return wholeResults(plan, measure, []);
  return wholeResults(plan, measure, withOtherValue(keys.values, topValuesQuery ?? topValuesOfSeries(plan)));
}

/** Computes the measure over events; with a breakdown, over those of each top value and of all others. */
function wholeResults(
  { keys, events }: SeriesPlan,
  { direct }: WholeMeasure,
  values: readonly Expression[],
): Select {
  const columns = { ...keyColumns({ ...keys, values }), [resultColumn]: direct };
  return selectFromEvents(columns, events, keyNames(keys));
}

/** A SELECT over the events of a series. */
const selectFromEvents = (
  columns: Readonly<Record<string, Expression>>,
  { from, condition }: SeriesEvents,
  groupBy: readonly string[] = [],
) => buildNamedSelect(columns, { from, where: condition, groupBy });

/** Computes the results of all values from one set of rows, and those of the others from the same rows again. */
function partialStatement(plan: SeriesPlan, measure: PartialMeasure, topValuesQuery: Query | null): Query {
  const { keys, events, limit, question } = plan;
  const count = keys.values.length;
  if (count === 0 && measure.direct !== null)
    return selectFromEvents({ ...keyColumns(keys), [resultColumn]: measure.direct }, events, keyNames(keys));
  const rows = measureRows(measure, keys, events);
  if (count === 0) return question.resultsOf(buildDerivedTable(rows, rowsName), keys, measure);
  const results = question.resultsOf(buildTable(rowsName), keys, measure);
  const ofTopValues = buildNamedSelect(fieldsNamed([...keyNames(keys), resultColumn]), {
    from: joinTopValues('inner', resultsName, topValuesName, count),
    queries: {
      [rowsName]: rows,
      [resultsName]: results,
      [topValuesName]: topValuesQuery ?? topValues(buildTable(resultsName), count, limit, question.total),
    },
  });
  const others = otherRows(measure, keys, joinTopValues('left', rowsName, topValuesName, count));
  return unionOf([ofTopValues, question.resultsOf(buildDerivedTable(others, 'other_rows'), keys, measure)]);
}

/** The rows of a measure: one for each group of events, or for each event. */
function measureRows(measure: PartialMeasure, keys: LineKeys, events: SeriesEvents): Select {
  const { actor, parts, isGrouped } = measure;
  const columns = {
    ...keyColumns(keys),
    ...(actor !== null && { [actorColumn]: actor }),
    ...Object.fromEntries(Object.entries(parts).map(([name, { of }]) => [name, of])),
  };
  return selectFromEvents(columns, withActor(events, actor), isGrouped ? groupNames(measure, keys) : []);
}

/** Names of the GROUP BY columns. */
const groupNames = (measure: PartialMeasure, keys: LineKeys): readonly string[] => [
  ...keyNames(keys),
  ...(measure.actor === null ? [] : [actorColumn]),
];

/** Restricts events to those with an actor, if actors are counted. */
const withActor = (events: SeriesEvents, actor: Expression | null): SeriesEvents =>
  actor === null
    ? events
    : {
        ...events,
        condition: combineConditions('and', [
          events.condition,
          buildExpression('isNotNull({actor})', { actor }),
        ]),
      };

/**
 * Merges the rows of all values without a separate line, so that each actor has one row again.
 * @param rows joined with the top values
 */
function otherRows(measure: PartialMeasure, keys: LineKeys, rows: From): Select {
  const { actor, parts } = measure;
  const other = buildExpression('{other}', { other: { value: otherValue } });
  const own = Object.fromEntries(
    keyNames(keys).map((name) => [name, name === bucketColumn ? buildField(name) : other]),
  );
  const from = { from: rows, where: isOutsideTopValues() };
  if (actor === null) return buildNamedSelect({ ...own, ...fieldsNamed(Object.keys(parts)) }, from);
  const merged = Object.entries(parts).map(([name, partOf]) => [name, partOf.merged] as const);
  const columns = { ...own, [actorColumn]: buildField(actorColumn), ...Object.fromEntries(merged) };
  return buildNamedSelect(columns, { ...from, groupBy: groupNames(measure, keys) });
}

const rowsName = 'trend_rows';

const resultsName = 'results_of_values';

const topValuesName = 'kept_values';

/** The values of a series with a separate line, as rows with one column per breakdown. */
export function topValuesOfSeries(plan: SeriesPlan): Select {
  const { measure, keys, events, limit, question } = plan;
  const isWhole = measure.form === 'whole';
  const results = isWhole
    ? wholeResults(plan, measure, keys.values)
    : question.resultsOf(buildDerivedTable(measureRows(measure, keys, events), rowsName), keys, measure);
  const total = isWhole ? sumOfFinite : question.total;
  return topValues(buildDerivedTable(results, resultsName), keys.values.length, limit, total);
}

const sumOfFinite = buildExpression(`sum(isFinite(toFloat(${resultColumn})) ? toFloat(${resultColumn}) : 0)`);

/** The values that have a separate line in any of several series. */
export function topValuesOfAny(plans: readonly SeriesPlan[]): Query {
  const columns = topValueColumns(plans[0]?.keys.values.length ?? 0);
  const from = buildDerivedTable(unionOf(plans.map(topValuesOfSeries)), 'kept_of_series');
  return buildNamedSelect(fieldsNamed(columns), { from, groupBy: columns });
}

import type { Expression, From, Select } from '../../dialect/ast.ts';
import {
  buildDerivedTable,
  buildExpression,
  buildField,
  combineConditions,
} from '../../dialect/ast_builders.ts';
import { otherValue } from './breakdown_placeholders.ts';
import { isOutsideTopValues } from './top_values.ts';
import type { PartialMeasure } from './measures.ts';
import { selectFromEvents, type SeriesEvents } from './series_events.ts';
import { fieldsNamed, buildNamedSelect } from './selects.ts';
import {
  actorColumn,
  bucketColumn,
  keyColumns,
  keyNames,
  type LineKeys,
  resultColumn,
} from './value_columns.ts';

/** Names of the GROUP BY columns. */
const groupNames = (measure: PartialMeasure, keys: LineKeys): readonly string[] => [
  ...keyNames(keys),
  ...(measure.actor === null ? [] : [actorColumn]),
];

/** The rows of a measure: one for each group of events, or for each event. */
export function measureRows(measure: PartialMeasure, keys: LineKeys, events: SeriesEvents): Select {
  const { actor, parts, isGrouped } = measure;
  const columns = {
    ...keyColumns(keys),
    ...(actor !== null && { [actorColumn]: actor }),
    ...Object.fromEntries(Object.entries(parts).map(([name, { of }]) => [name, of])),
  };
  return selectFromEvents(columns, withActor(events, actor), isGrouped ? groupNames(measure, keys) : []);
}

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
export function otherRows(measure: PartialMeasure, keys: LineKeys, rows: From): Select {
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

/** Aggregates rows, with one per actor, to the keys and `result`. */
export function measureResults(measure: PartialMeasure, keys: LineKeys, rows: From): Select {
  const names = keyNames(keys);
  return buildNamedSelect(
    { ...fieldsNamed(names), [resultColumn]: measure.value },
    { from: rows, groupBy: names },
  );
}

/** Counts each actor once, in the first interval with an event. */
export function firstIntervals(keys: LineKeys, rows: From): Select {
  const names = keyNames(keys);
  const values = names.filter((name) => name !== bucketColumn);
  const firsts = buildNamedSelect(
    {
      ...fieldsNamed([...values, actorColumn]),
      [bucketColumn]: buildExpression(`min(${bucketColumn})`),
    },
    { from: rows, groupBy: [...values, actorColumn] },
  );
  return buildNamedSelect(
    { ...fieldsNamed(names), [resultColumn]: buildExpression(`count(${actorColumn})`) },
    { from: buildDerivedTable(firsts, 'firsts'), groupBy: names },
  );
}

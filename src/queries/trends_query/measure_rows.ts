import type { Expression, From, Select } from '../../dialect/ast.ts';
import { derived, expressionOf, fieldOf, joined } from '../../dialect/build.ts';
import { otherValue } from './breakdown_marks.ts';
import { isNotKept } from './folding.ts';
import type { PartialMeasure } from './measures.ts';
import { overEvents, type SeriesEvents } from './series_events.ts';
import { sameColumns, selecting } from './selects.ts';
import {
  actorColumn,
  bucketColumn,
  keyColumns,
  keyNames,
  type LineKeys,
  resultColumn,
} from './value_columns.ts';

/** Names of the columns by which rows are grouped. */
const groupNames = (measure: PartialMeasure, keys: LineKeys): readonly string[] => [
  ...keyNames(keys),
  ...(measure.actor === null ? [] : [actorColumn]),
];

/** The rows of a measure: one of each group of events, or of each event. */
export function measureRows(measure: PartialMeasure, keys: LineKeys, events: SeriesEvents): Select {
  const { actor, parts, isGrouped } = measure;
  const columns = {
    ...keyColumns(keys),
    ...(actor !== null && { [actorColumn]: actor }),
    ...Object.fromEntries(Object.entries(parts).map(([name, { of }]) => [name, of])),
  };
  return overEvents(columns, ofSomebody(events, actor), isGrouped ? groupNames(measure, keys) : []);
}

/** Events that belong to an actor, where actors are counted. */
const ofSomebody = (events: SeriesEvents, actor: Expression | null): SeriesEvents =>
  actor === null
    ? events
    : {
        ...events,
        condition: joined('and', [events.condition, expressionOf('isNotNull({actor})', { actor })]),
      };

/**
 * Rows of all values that have no line of their own, taken together, so that each actor has one again.
 * @param rows beside the values that are kept
 */
export function otherRows(measure: PartialMeasure, keys: LineKeys, rows: From): Select {
  const { actor, parts } = measure;
  const other = expressionOf('{other}', { other: { value: otherValue } });
  const own = Object.fromEntries(
    keyNames(keys).map((name) => [name, name === bucketColumn ? fieldOf(name) : other]),
  );
  const from = { from: rows, where: isNotKept() };
  if (actor === null) return selecting({ ...own, ...sameColumns(Object.keys(parts)) }, from);
  const merged = Object.entries(parts).map(([name, part]) => [name, part.merged] as const);
  const columns = { ...own, [actorColumn]: fieldOf(actorColumn), ...Object.fromEntries(merged) };
  return selecting(columns, { ...from, groupBy: groupNames(measure, keys) });
}

/** What rows, of which each actor has one, amount to: the keys and `result`. */
export function measureResults(measure: PartialMeasure, keys: LineKeys, rows: From): Select {
  const names = keyNames(keys);
  return selecting({ ...sameColumns(names), [resultColumn]: measure.value }, { from: rows, groupBy: names });
}

/** Actors counted once, in the first interval in which they have an event. */
export function firstIntervals(keys: LineKeys, rows: From): Select {
  const names = keyNames(keys);
  const values = names.filter((name) => name !== bucketColumn);
  const firsts = selecting(
    {
      ...sameColumns([...values, actorColumn]),
      [bucketColumn]: expressionOf(`min(${bucketColumn})`),
    },
    { from: rows, groupBy: [...values, actorColumn] },
  );
  return selecting(
    { ...sameColumns(names), [resultColumn]: expressionOf(`count(${actorColumn})`) },
    { from: derived(firsts, 'firsts'), groupBy: names },
  );
}

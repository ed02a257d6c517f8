import type { Expression, OrderItem, Select } from '../../../dialect/ast.ts';
import {
  buildExpression,
  buildField,
  combineConditions,
  buildAlias,
  buildSelect,
} from '../../../dialect/ast_builders.ts';
import { parseOrderItem } from '../../../dialect/parser/parse.ts';
import type { Draft, Measure, Period } from '../draft.ts';
import { conjunction } from './conjunction.ts';
import { eventsCondition, filterCondition } from './filters.ts';
import { measureName, measureOf } from './measures.ts';
import { ColumnNames } from './names.ts';
import { queryTableOf, type QueryTable } from './query_table.ts';
import { bucketOf, periodCondition } from './times.ts';

/** The limit of a query over time, which must not be cut at the default of 100 rows. */
const maxPoints = 10_000;

/** Composes a query that counts or aggregates, over time, by groups, or in total. */
export function numbersQuery(draft: Draft): Select {
  const table = queryTableOf(draft);
  const names = new ColumnNames();
  const bucketName = draft.bucket && names.take(draft.bucket);
  const bucket =
    draft.bucket && bucketName ? [buildAlias(bucketOf(draft.bucket, table.time), bucketName)] : [];
  const keys = breakdownKeys(draft, table, names);
  const measures = measureColumns(draft, table, names);
  const [firstMeasure] = measures;
  const groups = [
    ...(bucketName === null ? [] : [buildField(bucketName)]),
    ...keys.map(({ group }) => group),
  ];
  const isTopOfEach = draft.limit !== null && bucketName !== null && keys.length > 0;
  const order = [
    ...(bucketName === null ? [] : [ascending(buildField(bucketName))]),
    ...(firstMeasure && keys.length > 0
      ? [{ ...ascending(buildField(firstMeasure.name)), descending: draft.ranked !== 'least' }]
      : []),
    ...keys.map(({ group }) => ascending(group)),
  ];
  const limit = isTopOfEach || (draft.limit === null && bucketName !== null) ? maxPoints : draft.limit;
  const shape = buildSelect(
    [
      `select 1 from ${table.name}`,
      groups.length > 0 ? 'group by 1' : '',
      isTopOfEach ? `limit ${draft.limit} by ${bucketName}` : '',
      limit === null ? '' : `limit ${limit}`,
    ].join(' '),
  );
  return {
    ...shape,
    columns: [...bucket, ...keys.map(({ column }) => column), ...measures.map(({ column }) => column)],
    where: rowsCondition(draft, table, keys),
    groupBy: shape.groupBy && { ...shape.groupBy, items: groups },
    orderBy: groups.length > 0 ? order : [],
  };
}

const ascending = (expression: Expression): OrderItem => ({ ...parseOrderItem('1'), expression });

interface Key {
  readonly column: Expression;
  readonly group: Expression;
}

function breakdownKeys(draft: Draft, table: QueryTable, names: ColumnNames): readonly Key[] {
  return draft.breakdowns.map((breakdown) => {
    if (breakdown.kind === 'property') {
      const group = table.property(breakdown.property);
      return { column: names.column(group, breakdown.property.key), group };
    }
    const group = buildField(breakdown.kind === 'event' ? 'event' : 'person_id');
    names.take(breakdown.kind);
    return { column: group, group };
  });
}

/** The measure by default: people if the prompt is about them, else rows. */
const defaultMeasure = (draft: Draft, table: QueryTable): Measure =>
  table.name === 'events' && draft.table === 'sessions'
    ? { kind: 'sessions' }
    : table.name === 'events' && draft.people && !draft.breakdowns.some(({ kind }) => kind === 'person')
      ? { kind: 'users' }
      : { kind: 'count' };

interface MeasureColumn {
  readonly name: string;
  readonly column: Expression;
}

/** A column for each measure; if events or periods are compared, one for each of them. */
function measureColumns(draft: Draft, table: QueryTable, names: ColumnNames): readonly MeasureColumn[] {
  const measures = (draft.measures.length > 0 ? draft.measures : [defaultMeasure(draft, table)]).map(
    (measure): Measure =>
      table.name === 'persons' && measure.kind === 'users' ? { kind: 'count' } : measure,
  );
  const byEvent = draft.breakdowns.some(({ kind }) => kind === 'event');
  const compared: readonly (readonly [name: string, condition: Expression | null])[] = draft.compared
    ? draft.compared.map((period) => [nameOfPeriod(period), periodCondition(period, table.time)] as const)
    : draft.events.length > 1 && !byEvent
      ? draft.events.map((event) => [event, eventsCondition([event])] as const)
      : [['', null]];
  return measures.flatMap((measure) =>
    compared.map(([name, condition]) => {
      const own = measureOwnName(measure, table);
      const taken = names.take(name === '' ? own : measure.kind === 'count' ? name : `${name}_${own}`);
      return { name: taken, column: buildAlias(measureOf(measure, table, condition), taken) };
    }),
  );
}

const measureOwnName = (measure: Measure, table: QueryTable): string =>
  'property' in measure
    ? `${measureName(measure)}_${measure.property.key}`
    : measure.kind === 'count' && table.name !== 'events'
      ? table.name
      : measureName(measure);

const nameOfPeriod = (period: Period): string =>
  period.kind !== 'calendar'
    ? 'period'
    : period.unit === 'day'
      ? (['today', 'yesterday'][period.ago] ?? 'day')
      : `${period.ago === 0 ? 'this' : 'last'}_${period.unit}`;

/** The condition on rows. @throws QueryError `unclear` */
function rowsCondition(draft: Draft, table: QueryTable, keys: readonly Key[]): Expression | null {
  const { period, compared, ranked } = draft;
  const [current, previous] = compared ?? [];
  return conjunction([
    table.name === 'events' ? eventsCondition(draft.events) : null,
    period && periodCondition(period, table.time),
    current && previous
      ? combineConditions('or', [periodCondition(previous, table.time), periodCondition(current, table.time)])
      : null,
    ...draft.filters.map((filter) => filterCondition(filter, table)),
    ...(ranked === null ? [] : keys.map(({ group }) => buildExpression('{key} is not null', { key: group }))),
  ]);
}

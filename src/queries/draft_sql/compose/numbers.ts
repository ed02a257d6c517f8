import type { Expression, OrderItem, Select } from '../../../dialect/ast.ts';
import { expressionOf, fieldOf, joined, named, selectOf } from '../../../dialect/build.ts';
import { parseOrderItem } from '../../../dialect/parser/parse.ts';
import type { Draft, Measure, Period } from '../draft.ts';
import { conjunction } from './conjunction.ts';
import { eventsCondition, filterCondition } from './filters.ts';
import { measureName, measureOf } from './measures.ts';
import { ColumnNames } from './names.ts';
import { subjectOf, type Subject } from './subject.ts';
import { bucketOf, periodCondition } from './times.ts';

/** So many rows where a line over time must not be cut at the usual 100. */
const mostPoints = 10_000;

/** A query that counts or computes something, over time or by something or altogether. */
export function numbersQuery(draft: Draft): Select {
  const subject = subjectOf(draft);
  const names = new ColumnNames();
  const bucketName = draft.bucket && names.take(draft.bucket);
  const bucket = draft.bucket && bucketName ? [named(bucketOf(draft.bucket, subject.time), bucketName)] : [];
  const keys = breakdownKeys(draft, subject, names);
  const measures = measureColumns(draft, subject, names);
  const [firstMeasure] = measures;
  const groups = [...(bucketName === null ? [] : [fieldOf(bucketName)]), ...keys.map(({ group }) => group)];
  const isTopOfEach = draft.limit !== null && bucketName !== null && keys.length > 0;
  const order = [
    ...(bucketName === null ? [] : [ascending(fieldOf(bucketName))]),
    ...(firstMeasure && keys.length > 0
      ? [{ ...ascending(fieldOf(firstMeasure.name)), descending: draft.ranked !== 'least' }]
      : []),
    ...keys.map(({ group }) => ascending(group)),
  ];
  const limit = isTopOfEach || (draft.limit === null && bucketName !== null) ? mostPoints : draft.limit;
  const shape = selectOf(
    [
      `select 1 from ${subject.table}`,
      groups.length > 0 ? 'group by 1' : '',
      isTopOfEach ? `limit ${draft.limit} by ${bucketName}` : '',
      limit === null ? '' : `limit ${limit}`,
    ].join(' '),
  );
  return {
    ...shape,
    columns: [...bucket, ...keys.map(({ column }) => column), ...measures.map(({ column }) => column)],
    where: rowsCondition(draft, subject, keys),
    groupBy: shape.groupBy && { ...shape.groupBy, items: groups },
    orderBy: groups.length > 0 ? order : [],
  };
}

const ascending = (expression: Expression): OrderItem => ({ ...parseOrderItem('1'), expression });

interface Key {
  readonly column: Expression;
  readonly group: Expression;
}

function breakdownKeys(draft: Draft, subject: Subject, names: ColumnNames): readonly Key[] {
  return draft.breakdowns.map((breakdown) => {
    if (breakdown.kind === 'property') {
      const group = subject.property(breakdown.property);
      return { column: names.column(group, breakdown.property.key), group };
    }
    const group = fieldOf(breakdown.kind === 'event' ? 'event' : 'person_id');
    names.take(breakdown.kind);
    return { column: group, group };
  });
}

/** What is computed where nothing is said: people where it is about them, rows otherwise. */
const usualMeasure = (draft: Draft, subject: Subject): Measure =>
  subject.table === 'events' && draft.subject === 'sessions'
    ? { kind: 'sessions' }
    : subject.table === 'events' && draft.people && !draft.breakdowns.some(({ kind }) => kind === 'person')
      ? { kind: 'users' }
      : { kind: 'count' };

interface MeasureColumn {
  readonly name: string;
  readonly column: Expression;
}

/** A column for each measure; where events or periods are compared, for each of them. */
function measureColumns(draft: Draft, subject: Subject, names: ColumnNames): readonly MeasureColumn[] {
  const measures = (draft.measures.length > 0 ? draft.measures : [usualMeasure(draft, subject)]).map(
    (measure): Measure =>
      subject.table === 'persons' && measure.kind === 'users' ? { kind: 'count' } : measure,
  );
  const byEvent = draft.breakdowns.some(({ kind }) => kind === 'event');
  const compared: readonly (readonly [name: string, condition: Expression | null])[] = draft.compared
    ? draft.compared.map((period) => [nameOfPeriod(period), periodCondition(period, subject.time)] as const)
    : draft.events.length > 1 && !byEvent
      ? draft.events.map((event) => [event, eventsCondition([event])] as const)
      : [['', null]];
  return measures.flatMap((measure) =>
    compared.map(([name, condition]) => {
      const own = measureOwnName(measure, subject);
      const taken = names.take(name === '' ? own : measure.kind === 'count' ? name : `${name}_${own}`);
      return { name: taken, column: named(measureOf(measure, subject, condition), taken) };
    }),
  );
}

const measureOwnName = (measure: Measure, subject: Subject): string =>
  'property' in measure
    ? `${measureName(measure)}_${measure.property.key}`
    : measure.kind === 'count' && subject.table !== 'events'
      ? subject.table
      : measureName(measure);

const nameOfPeriod = (period: Period): string =>
  period.kind !== 'calendar'
    ? 'period'
    : period.unit === 'day'
      ? (['today', 'yesterday'][period.ago] ?? 'day')
      : `${period.ago === 0 ? 'this' : 'last'}_${period.unit}`;

/** Which rows count. @throws QueryInvalid `unclear` */
function rowsCondition(draft: Draft, subject: Subject, keys: readonly Key[]): Expression | null {
  const { period, compared, ranked } = draft;
  const [current, previous] = compared ?? [];
  return conjunction([
    subject.table === 'events' ? eventsCondition(draft.events) : null,
    period && periodCondition(period, subject.time),
    current && previous
      ? joined('or', [periodCondition(previous, subject.time), periodCondition(current, subject.time)])
      : null,
    ...draft.filters.map((filter) => filterCondition(filter, subject)),
    ...(ranked === null ? [] : keys.map(({ group }) => expressionOf('{key} is not null', { key: group }))),
  ]);
}

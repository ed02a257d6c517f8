import type { DateTime } from 'luxon';
import type { Expression, From, Query, QueryCte, Select, SetOperation, Table } from '../../dialect/ast.ts';
import {
  buildAlias,
  buildDerivedTable,
  buildExpression,
  buildField,
  buildJoin,
  buildOrderItem,
  buildSelect,
  buildTable,
  combineConditions,
  withFrom,
} from '../../dialect/ast_builders.ts';
import { printExpression } from '../../dialect/print.ts';
import { rangeCondition, type ResolvedRange } from '../dates.ts';
import { filtersCondition, testAccountsCondition } from '../filters.ts';
import { seriesCondition } from '../insight_fields.ts';
import type { QueryProject } from '../query_kind.ts';
import { isFirstTimeMath, type TrendsQuery, type TrendsSeries } from './schema.ts';

/** Stands for events without a value. */
export const nullValue = '$$_posthog_breakdown_null_$$';
/** Stands for all values without a separate line. */
export const otherValue = '$$_posthog_breakdown_other_$$';

const placeholderLabels: ReadonlyMap<string, string> = new Map([
  [nullValue, 'None (i.e. no value)'],
  [otherValue, 'Other (i.e. all remaining values)'],
]);

/** The label of breakdown values. */
export const breakdownLabel = (values: readonly string[]): string =>
  values.map((value) => placeholderLabels.get(value) ?? value).join('::');

const nowhere = { start: 0, end: 0 };
const empty = buildSelect('select 1');

interface SelectParts {
  readonly from: From;
  readonly where?: Expression | null;
  /** Names of GROUP BY columns. */
  readonly groupBy?: readonly string[];
  readonly orderBy?: readonly { readonly by: Expression; readonly descending?: boolean }[];
  readonly limit?: number;
  readonly queries?: Readonly<Record<string, Query>>;
}

/** CTEs; each can use those before it. */
const namedQueries = (queries: Readonly<Record<string, Query>>): readonly QueryCte[] =>
  Object.entries(queries).map(([name, query]) => ({
    kind: 'query_cte',
    name: { kind: 'name', text: name, ...nowhere },
    query,
    ...nowhere,
  }));

/** Builds a SELECT of named columns. */
export function buildNamedSelect(columns: Readonly<Record<string, Expression>>, parts: SelectParts): Select {
  const { from, where = null, groupBy = [], orderBy = [], limit, queries = {} } = parts;
  return {
    ...empty,
    ctes: namedQueries(queries),
    columns: Object.entries(columns).map(([name, expression]) => buildAlias(expression, name)),
    from,
    where,
    groupBy:
      groupBy.length === 0
        ? null
        : {
            kind: 'group_by',
            mode: 'plain',
            items: groupBy.map((name) => buildField(name)),
            withTotals: false,
            ...nowhere,
          },
    orderBy: orderBy.map(({ by, descending = false }) => buildOrderItem(by, descending)),
    limit:
      limit === undefined
        ? null
        : {
            kind: 'limit',
            count: { kind: 'number', text: String(limit), ...nowhere },
            percent: false,
            offset: null,
            withTies: false,
            ...nowhere,
          },
  };
}

/** UNION ALL of several queries. */
export const unionOf = (operands: readonly Select[]): SetOperation => ({
  kind: 'set_operation',
  operator: 'union all',
  operands,
  orderBy: [],
  limit: null,
  ...nowhere,
});

/** Columns, unchanged. */
export const fieldsNamed = (names: readonly string[]): Readonly<Record<string, Expression>> =>
  Object.fromEntries(names.map((name) => [name, buildField(name)]));

/** Column names in all statements of trends. */
export const bucketColumn = 'bucket_start';
export const resultColumn = 'result';
export const actorColumn = 'actor';

/** The column names of a series' breakdowns. */
export const valueColumns = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `breakdown_${index + 1}`);

/** The keys of a series' lines, as expressions over an event. */
export interface LineKeys {
  /** The start of the event's interval; null if the range is a single interval. */
  readonly bucket: Expression | null;
  readonly values: readonly Expression[];
}

/** Column names of the keys, in column order. */
export const keyNames = ({
  bucket,
  values,
}: {
  readonly bucket: unknown;
  readonly values: readonly unknown[];
}): readonly string[] => [...(bucket === null ? [] : [bucketColumn]), ...valueColumns(values.length)];

/** The keys as columns of a SELECT over events. */
export const keyColumns = ({ bucket, values }: LineKeys): Readonly<Record<string, Expression>> => {
  const names = valueColumns(values.length);
  return {
    ...(bucket !== null && { [bucketColumn]: bucket }),
    ...Object.fromEntries(values.map((value, index) => [names[index] ?? '', value])),
  };
};

const topValueName = (column: string): string => column.replace('breakdown', 'kept');

/** The column names of the top values. */
export const topValueColumns = (count: number): readonly string[] => valueColumns(count).map(topValueName);

/**
 * The values with a separate line: those with the largest totals, ties in byte order; events without any value come
 * last.
 * @param results of all values: columns of values and `result`
 * @param total of a value, over its results
 */
export function topValues(results: From, count: number, limit: number, total: Expression): Select {
  const columns = valueColumns(count);
  const missing = combineConditions(
    'and',
    columns.map((name) =>
      buildExpression('{value} = {missing}', { value: buildField(name), missing: { value: nullValue } }),
    ),
  );
  return buildNamedSelect(Object.fromEntries(columns.map((name) => [topValueName(name), buildField(name)])), {
    from: results,
    groupBy: columns,
    orderBy: [
      { by: buildExpression('{missing} ? 1 : 0', { missing: missing ?? buildExpression('true') }) },
      { by: total, descending: true },
      ...columns.map((name) => ({ by: buildField(name) })),
    ],
    limit,
  });
}

/** The total of a value's results. */
export const sumOfResults = buildExpression(`sum(ifNull(${resultColumn}, 0))`);

/**
 * Joins rows to the top values: all rows, with null if their value is not among them (`left`), or only rows whose value
 * is (`inner`).
 */
export function joinTopValues(
  type: 'left' | 'inner',
  rows: string,
  topValuesName: string,
  count: number,
): From {
  const columns = valueColumns(count);
  const condition = combineConditions(
    'and',
    columns.map((name) =>
      buildExpression('{own} = {top}', { own: buildField(name), top: buildField(topValueName(name)) }),
    ),
  );
  return buildJoin(type, buildTable(rows), buildTable(topValuesName), condition ?? buildExpression('true'));
}

/** The condition that a row joined to the top values matches none. */
export const isOutsideTopValues = (): Expression =>
  buildExpression('isNull({first})', { first: buildField(topValueName(valueColumns(1)[0] ?? '')) });

/** The values of events, with those outside of the top values replaced by the value for all others. */
export function withOtherValue(values: readonly Expression[], topValuesQuery: Query): readonly Expression[] {
  const isTopValue = isOneOfValues(values, topValuesQuery);
  return values.map((value) =>
    buildExpression('{isTopValue} ? {value} : {other}', { isTopValue, value, other: { value: otherValue } }),
  );
}

/** The condition that an event's values are among the rows of a query. */
export function isOneOfValues(values: readonly Expression[], topValuesQuery: Query): Expression {
  const [first, ...more] = values;
  const row: Expression = { kind: 'tuple', items: values, start: 0, end: 0 };
  return {
    kind: 'comparison',
    operator: 'in',
    left: first !== undefined && more.length === 0 ? first : row,
    right: { kind: 'subquery', query: topValuesQuery, start: 0, end: 0 },
    start: 0,
    end: 0,
  };
}

/** The events that a series counts. */
export interface SeriesEvents {
  readonly from: From;
  readonly condition: Expression | null;
}

/** A series and its position in a query. */
export interface SeriesPosition {
  readonly query: TrendsQuery;
  readonly series: TrendsSeries;
  /** Counted from 0. */
  readonly index: number;
  readonly project: QueryProject;
}

export const attrOf = ({ index }: Pick<SeriesPosition, 'index'>): string => `query__series__${index}`;

/** The (sampled) events that a query reads. */
const eventsOfQuery = ({ query }: SeriesPosition): Table => buildTable('events', query.samplingFactor);

/** The conditions of the query and of a series on an event, except for its time. @throws QueryError */
function filterOf({ query, series, project, ...position }: SeriesPosition): Expression | null {
  return combineConditions('and', [
    seriesCondition(series, attrOf(position)),
    filtersCondition(query.properties, { scope: 'events', attr: 'query__properties' }),
    query.filterTestAccounts ? testAccountsCondition(project, 'events') : null,
  ]);
}

/** Events of a series in a range. @throws QueryError */
export function seriesEvents(position: SeriesPosition, range: ResolvedRange): SeriesEvents {
  const filter = filterOf(position);
  const condition = combineConditions('and', [filter, rangeCondition(range)]);
  if (!isFirstTimeMath(position.series.math)) return { from: eventsOfQuery(position), condition };
  return { from: firstEvents(position, filter, range), condition };
}

/** Events of a series from `first` to the end of a range. @throws QueryError */
export function seriesEventsSince(
  position: SeriesPosition,
  first: DateTime,
  { interval, to }: ResolvedRange,
): SeriesEvents {
  const range = { interval, from: first, to, buckets: [] };
  return {
    from: eventsOfQuery(position),
    condition: combineConditions('and', [filterOf(position), rangeCondition(range)]),
  };
}

/** The condition on the events among which the first one of a person is determined. */
function firstEventFilter(
  { series, ...position }: SeriesPosition,
  filter: Expression | null,
): Expression | null {
  if (series.math === 'first_matching_event_for_user') return filter;
  return seriesCondition(
    { kind: series.kind, ...('event' in series && { event: series.event }) },
    attrOf(position),
  );
}

/** The time of each person's first event, if it is in the range. */
const firstTimes = (position: SeriesPosition, among: Expression | null, range: ResolvedRange): Select => {
  // Events after the range cannot be the first of anyone who has one in the range.
  const times = buildSelect(
    `select person_id as first_person, min(timestamp) as first_time from events
     where {among} and timestamp <= {end} group by first_person having first_time >= {start}`,
    {
      among: among ?? buildExpression('true'),
      start: { value: range.from.toUTC().toISO() ?? '' },
      end: { value: range.to.plus(1).toUTC().toISO() ?? '' },
    },
  );
  return withFrom(times, eventsOfQuery(position));
};

/**
 * First events of persons: among all with the name of the series, or among those that match its filters. Events of the
 * same microsecond are all first.
 */
const firstEvents = (position: SeriesPosition, filter: Expression | null, range: ResolvedRange): From =>
  buildJoin(
    'inner',
    eventsOfQuery(position),
    buildDerivedTable(firstTimes(position, firstEventFilter(position, filter), range), 'firsts'),
    buildExpression('person_id = first_person and timestamp = first_time'),
  );

/**
 * The persons and times of first events alone, as `person_id` and `timestamp`, which avoids a second scan of the
 * events; null if the first event also has to match filters.
 */
export function firstEventTimes(position: SeriesPosition, range: ResolvedRange): SeriesEvents | null {
  const filter = filterOf(position);
  const among = firstEventFilter(position, filter);
  const isSame = (among && printExpression(among)) === (filter && printExpression(filter));
  if (!isFirstTimeMath(position.series.math) || !isSame) return null;
  const times = buildNamedSelect(
    { person_id: buildField('first_person'), timestamp: buildField('first_time') },
    { from: buildDerivedTable(firstTimes(position, among, range), 'firsts') },
  );
  return { from: buildDerivedTable(times, 'first_events'), condition: rangeCondition(range) };
}

/** A SELECT over the events of a series. */
export const selectFromEvents = (
  columns: Readonly<Record<string, Expression>>,
  { from, condition }: SeriesEvents,
  groupBy: readonly string[] = [],
) => buildNamedSelect(columns, { from, where: condition, groupBy });

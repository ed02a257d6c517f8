import type { DateTime } from 'luxon';
import type { Expression, From, Query, QueryCte, Select, SetOperation, Table } from '@exportd/dialect/ast';
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
} from '@exportd/dialect/ast_builders';
import { printExpression } from '@exportd/dialect/print';
import { rangeCondition, type ResolvedRange } from '../dates.ts';
import { type DialectReader, parseExpressionAt } from '../dialect_reader.ts';
import {
  breakdownExpression,
  breakdownsOf,
  checkFilters,
  checkTestAccounts,
  filtersCondition,
  seriesCondition,
  testAccountsCondition,
} from '../query_fields.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import {
  isFirstTimeMath,
  isPerActorMath,
  isPropertyMath,
  type PropertyMath,
  statistics,
  type TrendsQuery,
  type TrendsSeries,
} from './schema.ts';

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

/** A column of a measure's rows. */
interface MeasurePart {
  /** Computed from the events of a row: an aggregate if rows are groups of events. */
  readonly of: Expression;
  /** Merges the column over several rows. */
  readonly merged: Expression;
}

/**
 * A measure in two steps: rows for groups of events, and a value over rows. Values beyond the limit can then be merged
 * without reading the events again.
 */
export interface PartialMeasure {
  readonly form: 'partial';
  /** The unit that is counted once or has one number: a person, a group or a session. Rows have it as `actor`. */
  readonly actor: Expression | null;
  /** Whether a row aggregates several events. */
  readonly isGrouped: boolean;
  readonly parts: Readonly<Record<string, MeasurePart>>;
  /** Computed over rows, with one per actor. */
  readonly value: Expression;
  /** The same computed directly over events; null if both steps are needed. */
  readonly direct: Expression | null;
}

/** An expression that must be computed over the events themselves. */
export interface WholeMeasure {
  readonly form: 'whole';
  readonly direct: Expression;
}

export type Measure = PartialMeasure | WholeMeasure;

const partOf = (of: Expression, merge: string, name: string): MeasurePart => ({
  of,
  merged: buildExpression(`${merge}(${name})`),
});
const countOfEvents = buildExpression('count()');

const distinct = (actor: Expression): PartialMeasure => ({
  form: 'partial',
  actor,
  isGrouped: true,
  parts: {},
  value: buildExpression('count(actor)'),
  direct: null,
});

/** The measure of a series. @throws QueryError */
export function measureOf(series: TrendsSeries, attr: string): Measure {
  const { math } = series;
  if (isPropertyMath(math)) return propertyMeasure(series, math, attr);
  if (isPerActorMath(math)) return perActorMeasure(math.replace(/_count_per_actor$/, '') as PropertyMath);
  if (isFirstTimeMath(math)) return distinct(buildField('person_id'));
  switch (math) {
    case 'dau':
    case 'weekly_active':
    case 'monthly_active':
      return distinct(buildField('person_id'));
    case 'unique_session':
      return distinct(buildExpression("ifNull($session_id, '')"));
    case 'unique_group':
      return distinct(groupKey(series, attr));
    case 'hogql':
      return { form: 'whole', direct: hogqlMath(series, attr) };
    default:
      return {
        form: 'partial',
        actor: null,
        isGrouped: true,
        parts: { amount: partOf(countOfEvents, 'sum', 'amount') },
        value: buildExpression('sum(amount)'),
        direct: countOfEvents,
      };
  }
}

function groupKey({ math_group_type_index }: TrendsSeries, attr: string): Expression {
  if (typeof math_group_type_index !== 'number')
    throw new QueryError('invalid_input', 'math unique_group requires math_group_type_index.', {
      attr: `${attr}__math_group_type_index`,
    });
  return buildExpression("nullIf({key}, '')", { key: buildField(`$group_${math_group_type_index}`) });
}

function hogqlMath({ math_hogql }: TrendsSeries, attr: string): Expression {
  const path = `${attr}__math_hogql`;
  if (!math_hogql)
    throw new QueryError('invalid_input', 'math hogql requires an expression in math_hogql.', {
      attr: path,
    });
  return parseExpressionAt(math_hogql, path);
}

/** Applies the series' multiplier. */
const multiplied = (number: Expression, by: number | null | undefined): Expression =>
  by === null || by === undefined || by === 1
    ? number
    : buildExpression('{number} * {multiplier}', { number, multiplier: { value: by } });

function propertyMeasure(series: TrendsSeries, math: PropertyMath, attr: string): PartialMeasure {
  const { math_property: property, math_property_type: type, math_multiplier: by } = series;
  if (!property)
    throw new QueryError('invalid_input', `math ${math} requires math_property.`, {
      attr: `${attr}__math_property`,
    });
  if (property === '$session_duration') return sessionMeasure(math, by);
  const number = buildExpression('toFloat({value})', { value: propertyOf(property, type, attr) });
  // JSON has no NaN and no Infinity: a text that reads like one is no number, and must not swallow the others.
  const x = multiplied(buildExpression('if(isFinite({number}), {number}, null)', { number }), by);
  const direct = buildExpression(statistics[math], { x });
  const base = { form: 'partial', actor: null, direct } as const;
  switch (math) {
    case 'sum':
    case 'min':
    case 'max':
      return {
        ...base,
        isGrouped: true,
        parts: { amount: partOf(direct, math, 'amount') },
        value: buildExpression(`${math}(amount)`),
      };
    case 'avg':
      return {
        ...base,
        isGrouped: true,
        parts: {
          amount: partOf(buildExpression('sum({x})', { x }), 'sum', 'amount'),
          numbers: partOf(buildExpression('count({x})', { x }), 'sum', 'numbers'),
        },
        value: buildExpression('sum(amount) / nullIf(sum(numbers), 0)'),
      };
    default:
      return {
        ...base,
        isGrouped: false,
        parts: { amount: partOf(x, 'any', 'amount') },
        value: buildExpression(statistics[math], { x: buildField('amount') }),
      };
  }
}

function propertyOf(property: string, type: string | null | undefined, attr: string): Expression {
  switch (type ?? 'event_properties') {
    case 'event_properties':
    case 'event':
    case 'numerical_event_properties':
      return buildField('properties', property);
    case 'person_properties':
    case 'person':
      return buildField('person', 'properties', property);
    case 'session_properties':
    case 'session':
      return buildField('session', property);
    default:
      throw new QueryError(
        'not_supported',
        'math_property_type must be event_properties, person_properties or session_properties.',
        { attr: `${attr}__math_property_type` },
      );
  }
}

/** Each session has one duration per interval, however many events it has there. */
function sessionMeasure(math: PropertyMath, by: number | null | undefined): PartialMeasure {
  const duration = multiplied(buildExpression('toFloat(any(session.$session_duration))'), by);
  return {
    form: 'partial',
    actor: buildExpression("nullIf($session_id, '')"),
    isGrouped: true,
    parts: { amount: partOf(duration, 'any', 'amount') },
    value: buildExpression(statistics[math], { x: buildField('amount') }),
    direct: null,
  };
}

const perActorMeasure = (statistic: PropertyMath): PartialMeasure => ({
  form: 'partial',
  actor: buildField('person_id'),
  isGrouped: true,
  parts: { amount: partOf(countOfEvents, 'sum', 'amount') },
  value: buildExpression(statistics[statistic], { x: buildField('amount') }),
  direct: null,
});

/**
 * Compiles each expression of a query separately, so that an error names its field rather than a generated statement.
 * @throws QueryError
 */
export function checkExpressions(query: TrendsQuery, project: QueryProject, reader: DialectReader): void {
  checkFilters(query.properties, 'query__properties', reader);
  if (query.filterTestAccounts) checkTestAccounts(project, reader);
  const kindOf = (expression: Expression, attr: string): string | undefined => {
    const alone = buildNamedSelect({ value: expression }, { from: buildTable('events') });
    return reader.compile(alone, { attr }).columns[0]?.type.kind;
  };
  for (const breakdown of breakdownsOf(query.breakdownFilter))
    kindOf(breakdownExpression(breakdown), breakdown.attr);
  for (const [index, series] of query.series.entries()) {
    if (series.kind !== 'EventsNode') continue;
    const attr = `query__series__${index}`;
    checkFilters(series.properties, `${attr}__properties`, reader);
    checkFilters(series.fixedProperties, `${attr}__fixedProperties`, reader);
    const measure = measureOf(series, attr);
    if (measure.form !== 'whole') {
      if (measure.direct !== null) kindOf(measure.direct, `${attr}__math_property`);
      continue;
    }
    const path = `${attr}__math_hogql`;
    const kind = kindOf(measure.direct, path) ?? 'null';
    if (!['integer', 'float', 'decimal', 'boolean', 'null'].includes(kind))
      throw new QueryError(
        'invalid_input',
        'The expression must return a number, such as sum(toFloat(properties.price)).',
        {
          attr: path,
        },
      );
  }
}

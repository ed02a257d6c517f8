import type { Expression, From, Select, Table } from '@exportd/dialect/ast';
import {
  buildDerivedTable,
  buildExpression,
  buildField,
  buildJoin,
  buildSelect,
  buildTable,
  combineConditions,
  withFrom,
} from '@exportd/dialect/ast_builders';
import { printExpression } from '@exportd/dialect/print';
import type { DateTime } from 'luxon';
import { type ResolvedRange, rangeCondition } from '../dates.ts';
import { seriesCondition } from '../nodes.ts';
import { filtersCondition, testAccountsCondition } from '../property_filters.ts';
import type { QueryProject } from '../query_kind.ts';
import { buildNamedSelect } from './named_select.ts';
import { type TrendsQuery, type TrendsSeries, isFirstTimeMath } from './schema.ts';

/** A series and its position in a query. */
export interface SeriesPosition {
  readonly query: TrendsQuery;
  readonly series: TrendsSeries;
  /** Counted from 0. */
  readonly index: number;
  readonly project: QueryProject;
  /** The id of the cohort whose persons' events are counted; null for those of everyone. */
  readonly cohort: number | null;
}

export const attrOf = ({ index }: Pick<SeriesPosition, 'index'>): string => `query__series__${index}`;

/** The events that a series counts. */
export interface SeriesEvents {
  readonly from: From;
  readonly condition: Expression | null;
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

/** The (sampled) events that a query reads. */
const eventsOfQuery = ({ query }: SeriesPosition): Table => buildTable('events', query.samplingFactor);

/** The conditions of the query and of a series on an event, except for its time. @throws QueryError */
function filterOf({ query, series, project, cohort, ...position }: SeriesPosition): Expression | null {
  return combineConditions('and', [
    seriesCondition(series, attrOf(position), project),
    cohort === null ? null : buildExpression('person_id in cohort {cohort}', { cohort: { value: cohort } }),
    filtersCondition(query.properties, { scope: 'events', attr: 'query__properties' }),
    query.filterTestAccounts ? testAccountsCondition(project, 'events') : null,
  ]);
}

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

/** The condition on the events among which the first one of a person is determined. */
function firstEventFilter(
  { series, ...position }: SeriesPosition,
  filter: Expression | null,
): Expression | null {
  if (series.math === 'first_matching_event_for_user') return filter;
  return seriesCondition(
    { ...series, properties: null, fixedProperties: null },
    attrOf(position),
    position.project,
  );
}

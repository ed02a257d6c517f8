import type { DateTime } from 'luxon';
import type { Expression, From, Select, Table } from '../../dialect/ast.ts';
import {
  derived,
  expressionOf,
  fieldOf,
  joined,
  reading,
  selectOf,
  tableNamed,
} from '../../dialect/build.ts';
import { printExpression } from '../../dialect/print/print.ts';
import { rangeCondition, type ResolvedRange } from '../dates/date_range.ts';
import { filtersCondition, testAccountsCondition } from '../filters/condition.ts';
import type { QueryProject } from '../query_kind.ts';
import { seriesCondition } from '../series/condition.ts';
import { isFirstTimeMath } from './math.ts';
import type { TrendsQuery } from './schema.ts';
import type { TrendsSeries } from './series_schema.ts';
import { selecting } from './selects.ts';

/** The events that a series counts. */
export interface SeriesEvents {
  readonly from: From;
  readonly condition: Expression | null;
}

/** A series of a query and its place there. */
export interface SeriesPlace {
  readonly query: TrendsQuery;
  readonly series: TrendsSeries;
  /** From zero. */
  readonly index: number;
  readonly project: QueryProject;
}

export const attrOf = ({ index }: Pick<SeriesPlace, 'index'>): string => `query__series__${index}`;

/** The events that a query reads. */
const eventsOfQuery = ({ query }: SeriesPlace): Table => tableNamed('events', query.samplingFactor);

/** What the whole query and a series ask of an event, but for its time. @throws QueryInvalid */
function filterOf({ query, series, project, ...place }: SeriesPlace): Expression | null {
  return joined('and', [
    seriesCondition(series, attrOf(place)),
    filtersCondition(query.properties, { scope: 'events', attr: 'query__properties' }),
    query.filterTestAccounts ? testAccountsCondition(project, 'events') : null,
  ]);
}

/** Events of a series in a range. @throws QueryInvalid */
export function seriesEvents(place: SeriesPlace, range: ResolvedRange): SeriesEvents {
  const filter = filterOf(place);
  const condition = joined('and', [filter, rangeCondition(range)]);
  if (!isFirstTimeMath(place.series.math)) return { from: eventsOfQuery(place), condition };
  return { from: firstEvents(place, filter, range), condition };
}

/** Events of a series after a moment, up to the end of a range. @throws QueryInvalid */
export function seriesEventsSince(
  place: SeriesPlace,
  first: DateTime,
  { interval, to }: ResolvedRange,
): SeriesEvents {
  const range = { interval, from: first, to, buckets: [] };
  return { from: eventsOfQuery(place), condition: joined('and', [filterOf(place), rangeCondition(range)]) };
}

/** The condition on events among which those of `first_time_for_user` are the first. */
function firstAmong({ series, ...place }: SeriesPlace, filter: Expression | null): Expression | null {
  if (series.math === 'first_matching_event_for_user') return filter;
  return seriesCondition(
    { kind: series.kind, ...('event' in series && { event: series.event }) },
    attrOf(place),
  );
}

/** When the first event of each person was, of those for whom it lies in the range. */
const firstTimes = (place: SeriesPlace, among: Expression | null, range: ResolvedRange): Select => {
  // Later events are the first of nobody who has one in the range.
  const times = selectOf(
    `select person_id as first_person, min(timestamp) as first_time from events
     where {among} and timestamp <= {end} group by first_person having first_time >= {begin}`,
    {
      among: among ?? expressionOf('true'),
      begin: { value: range.from.toUTC().toISO() ?? '' },
      end: { value: range.to.plus(1).toUTC().toISO() ?? '' },
    },
  );
  return reading(times, eventsOfQuery(place));
};

/**
 * Events that are the first of their person: of all with the name of the series, or of those that its filters leave.
 * Events of the same microsecond are first together.
 */
const firstEvents = (place: SeriesPlace, filter: Expression | null, range: ResolvedRange): From =>
  joinedTo(place, derived(firstTimes(place, firstAmong(place, filter), range), 'firsts'));

/**
 * The persons of first events with their times alone, as `person_id` and `timestamp`, which need no second look at the
 * events; null where the first event also has to satisfy filters.
 */
export function firstEventTimes(place: SeriesPlace, range: ResolvedRange): SeriesEvents | null {
  const filter = filterOf(place);
  const among = firstAmong(place, filter);
  const isSame = (among && printExpression(among)) === (filter && printExpression(filter));
  if (!isFirstTimeMath(place.series.math) || !isSame) return null;
  const times = selecting(
    { person_id: fieldOf('first_person'), timestamp: fieldOf('first_time') },
    { from: derived(firstTimes(place, among, range), 'firsts') },
  );
  return { from: derived(times, 'first_events'), condition: rangeCondition(range) };
}

function joinedTo(place: SeriesPlace, firsts: From): From {
  const both = selectOf(
    'select 1 from events join firsts on person_id = first_person and timestamp = first_time',
  );
  const { from } = both;
  if (from?.kind !== 'join') throw new Error('Not a join.');
  return { ...from, left: eventsOfQuery(place), right: firsts };
}

/** A SELECT over the events of a series. */
export const overEvents = (
  columns: Readonly<Record<string, Expression>>,
  { from, condition }: SeriesEvents,
  groupBy: readonly string[] = [],
) => selecting(columns, { from, where: condition, groupBy });

import type { DateTime } from 'luxon';
import type { ResolvedRange } from '../../../src/queries/dates.ts';
import { actorOf, mathOf, type ReferenceEvent } from './reference_math.ts';

/** A series of the tests. */
export interface ReferenceSeries {
  /** Whether its node selects an event. */
  readonly selects: (event: ReferenceEvent) => boolean;
  readonly math: string;
  readonly math_property?: string;
  readonly math_multiplier?: number;
  readonly math_hogql?: string;
  readonly math_group_type_index?: number;
  /** Only events with this plan. */
  readonly plan: string | null;
  /** Only events of persons for whom its filter holds. */
  readonly cohort: (event: ReferenceEvent) => boolean;
}

/** A cohort of a breakdown. */
export interface ReferenceCohort {
  readonly name: string;
  readonly has: (event: ReferenceEvent) => boolean;
}

/** A breakdown: how the value of an event is read. */
export type ReferenceBreakdown = (event: ReferenceEvent) => string | null;

export interface ReferenceQuery {
  readonly series: readonly ReferenceSeries[];
  readonly display: 'timeSeries' | 'cumulative' | 'totalValue';
  readonly breakdowns: readonly ReferenceBreakdown[];
  readonly cohorts: readonly ReferenceCohort[] | null;
  readonly limit: number;
  readonly hideOther: boolean;
  readonly smoothing: number;
  /** Computes one point from the values of the first two series. */
  readonly formula: ((values: readonly number[]) => number) | null;
  readonly sample?: ReferenceSample;
}

/** The distinct ids in the sample, and the share of all that they stand for. */
export interface ReferenceSample {
  readonly distinctIds: ReadonlySet<unknown>;
  readonly factor: number;
}

interface ReferenceLine {
  readonly values: readonly string[];
  readonly data: readonly number[];
}

const missing = '$$_posthog_breakdown_null_$$';
const other = '$$_posthog_breakdown_other_$$';
const dayOf = (time: DateTime): number =>
  Math.round(Date.UTC(time.year, time.month - 1, time.day) / 86_400_000);
const sum = (data: readonly number[]): number => data.reduce((total, value) => total + value, 0);

/** A reference implementation of the lines of one range, which reads all events again for each point. */
export class ReferenceTrends {
  readonly #events: readonly ReferenceEvent[];
  readonly #query: ReferenceQuery;
  readonly #range: ResolvedRange;
  readonly #durations = new Map<string, number>();

  constructor(events: readonly ReferenceEvent[], query: ReferenceQuery, range: ResolvedRange) {
    const { sample } = query;
    this.#events = sample ? events.filter(({ distinct_id }) => sample.distinctIds.has(distinct_id)) : events;
    this.#query = query;
    this.#range = range;
    const sessions = new Map<string, number[]>();
    for (const { properties, time } of events)
      if (typeof properties.$session_id === 'string')
        sessions.set(properties.$session_id, [
          ...(sessions.get(properties.$session_id) ?? []),
          time.toMillis(),
        ]);
    for (const [session, times] of sessions)
      this.#durations.set(session, (Math.max(...times) - Math.min(...times)) / 1_000);
  }

  /** The lines of each series or formula, in order. */
  lines(): readonly (readonly ReferenceLine[])[] {
    const { series, formula, display } = this.#query;
    if (formula === null) return series.map((one) => this.#linesOf(one));
    const isKept = new Set(series.slice(0, 2).flatMap((one) => this.#keptBy(one)));
    const bySeries = series.map((one) => this.#linesOf(one, isKept));
    const values = new Map(
      bySeries
        .slice(0, 2)
        .flat()
        .map((line) => [JSON.stringify(line.values), line.values]),
    );
    const length = display === 'totalValue' ? 1 : this.#range.buckets.length;
    const computed = [...values].map(([key, own]): ReferenceLine => {
      const parts = bySeries.map((lines) => lines.find((line) => JSON.stringify(line.values) === key));
      const data = Array.from(
        { length },
        (_, point) => formula(parts.map((line) => line?.data[point] ?? 0)) + 0,
      );
      return { values: own, data };
    });
    return [sorted(computed, display === 'cumulative' ? (data) => data.at(-1) ?? 0 : sum)];
  }

  /** All values of a series, in order. */
  #groupsOf(series: ReferenceSeries, events: readonly ReferenceEvent[]) {
    const { breakdowns } = this.#query;
    const groups = new Map<string, { values: readonly string[]; events: ReferenceEvent[] }>();
    for (const event of events) {
      const values = breakdowns.map((read) => {
        const value = read(event);
        return value === null || value === '' ? missing : value;
      });
      const group = groups.get(JSON.stringify(values)) ?? { values, events: [] };
      groups.set(JSON.stringify(values), group);
      group.events.push(event);
    }
    return sorted(
      [...groups.entries()].map(([key, group]) => ({
        ...group,
        key,
        data: this.#data(series, group.events),
      })),
    );
  }

  /** The values of a series with a separate line. */
  #keptBy(series: ReferenceSeries): readonly string[] {
    return this.#groupsOf(series, this.#eventsOf(series))
      .slice(0, this.#query.limit)
      .map(({ key }) => key);
  }

  #linesOf(
    series: ReferenceSeries,
    isKept: ReadonlySet<string> = new Set(this.#keptBy(series)),
  ): readonly ReferenceLine[] {
    const { breakdowns, hideOther, cohorts } = this.#query;
    const events = this.#eventsOf(series);
    if (cohorts !== null)
      return cohorts.map(({ name, has }) => ({
        values: [name],
        data: this.#shown(series, this.#data(series, events.filter(has))),
      }));
    if (breakdowns.length === 0)
      return [{ values: [], data: this.#shown(series, this.#data(series, events)) }];
    const lines = this.#groupsOf(series, events);
    const rest = lines.filter(({ key }) => !isKept.has(key)).flatMap((line) => line.events);
    const all: ReferenceLine[] = lines.filter(({ key }) => isKept.has(key));
    if (rest.length > 0 && !hideOther)
      all.push({ values: breakdowns.map(() => other), data: this.#data(series, rest) });
    return all
      .filter(
        ({ values, data }) => values.some((value) => value !== missing) || data.some((value) => value !== 0),
      )
      .map(({ values, data }) => ({ values, data: this.#shown(series, data) }));
  }

  #windowOf({ math }: ReferenceSeries): number | null {
    const { interval } = this.#range;
    const isTotal = this.#query.display === 'totalValue';
    if (math === 'weekly_active' && (isTotal || (interval !== 'week' && interval !== 'month'))) return 7;
    return math === 'monthly_active' && (isTotal || interval !== 'month') ? 30 : null;
  }

  /** The events of a series, including those in windows before the range. */
  #eventsOf(series: ReferenceSeries): readonly ReferenceEvent[] {
    const { from, to, buckets } = this.#range;
    const named = this.#events.filter(series.selects);
    const fits = (event: ReferenceEvent): boolean =>
      (series.plan === null || event.properties.plan === series.plan) && series.cohort(event);
    const isFirst = series.math.startsWith('first_');
    const among = series.math === 'first_matching_event_for_user' ? named.filter(fits) : named;
    const firsts = new Map<string, number>();
    for (const { person_id, time } of among)
      if (person_id !== null)
        firsts.set(person_id, Math.min(firsts.get(person_id) ?? Infinity, time.toMillis()));
    const window = this.#windowOf(series);
    const [first = from] = buckets;
    const begins = ({ time }: ReferenceEvent): boolean =>
      window === null
        ? time >= from
        : this.#query.display === 'totalValue'
          ? time > to.minus({ days: window })
          : dayOf(time) >= dayOf(first) - window + 1;
    return named.filter(
      (event) =>
        fits(event) &&
        actorOf(series.math, series.math_property, event) !== null &&
        event.time <= to &&
        begins(event) &&
        (!isFirst || firsts.get(event.person_id ?? '') === event.time.toMillis()),
    );
  }

  /** Before cumulation and smoothing. */
  #data(series: ReferenceSeries, events: readonly ReferenceEvent[]): readonly number[] {
    const { display } = this.#query;
    if (display === 'totalValue') return [mathOf(series, events, this.#durations)];
    const { buckets } = this.#range;
    const window = this.#windowOf(series);
    const isOnce = display === 'cumulative' && ['dau', 'unique_group'].includes(this.#mathOf(series));
    return buckets.map((bucket, index) => {
      const next = buckets[index + 1];
      const within = (event: ReferenceEvent): boolean =>
        event.time >= bucket && (next === undefined || event.time < next);
      const upTo = (event: ReferenceEvent): boolean => next === undefined || event.time < next;
      if (isOnce)
        return (
          mathOf(series, events.filter(upTo), this.#durations) -
          mathOf(
            series,
            events.filter(({ time }) => time < bucket),
            this.#durations,
          )
        );
      if (window === null) return mathOf(series, events.filter(within), this.#durations);
      const day = dayOf(bucket);
      const looked = events.filter(({ time }) => dayOf(time) <= day && dayOf(time) > day - window);
      return mathOf(series, looked, this.#durations);
    });
  }

  #mathOf(series: ReferenceSeries): string {
    return series.math.endsWith('ly_active') && this.#windowOf(series) === null ? 'dau' : series.math;
  }

  #shown({ math }: ReferenceSeries, counted: readonly number[]): readonly number[] {
    const { display, smoothing, sample } = this.#query;
    const data = counted.map((value) => extrapolate(math, value, sample?.factor ?? 1));
    if (display === 'totalValue') return data;
    const summed = display === 'cumulative' ? data.map((_, index) => sum(data.slice(0, index + 1))) : data;
    if (smoothing === 1) return summed;
    return summed.map((_, index) => {
      const points = summed.slice(Math.max(0, index + 1 - smoothing), index + 1);
      return Math.floor(sum(points) / points.length);
    });
  }
}

const counts = [
  'total',
  'dau',
  'weekly_active',
  'monthly_active',
  'unique_session',
  'unique_group',
  'first_time_for_user',
  'first_matching_event_for_user',
];

/** Extrapolates a number of a sample. */
function extrapolate(math: string, value: number, factor: number): number {
  if (math === 'sum') return value / factor;
  return counts.includes(math) ? Math.round(value / factor) : value;
}

/** Sorts values by their totals, then by bytes; then events without a value, then all others. */
function sorted<Line extends ReferenceLine>(
  lines: readonly Line[],
  totalOf: (data: readonly number[]) => number = sum,
): readonly Line[] {
  const rank = ({ values }: Line): number =>
    values[0] === other ? 2 : values.length > 0 && values.every((value) => value === missing) ? 1 : 0;
  const bytes = (value: string): string => Buffer.from(value).toString('hex');
  const text = ({ values }: Line): string => values.map(bytes).join(' ');
  return [...lines].sort(
    (one, another) =>
      rank(one) - rank(another) ||
      totalOf(another.data) - totalOf(one.data) ||
      (text(one) < text(another) ? -1 : text(one) > text(another) ? 1 : 0),
  );
}

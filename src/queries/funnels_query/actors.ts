import type { Select } from '@exportd/dialect/ast';
import { parseAbsoluteDate } from '../../filters/condition.ts';
import { resolveRange, momentOfDate } from '../dates.ts';
import { cohortOfPoint } from '../cohorts.ts';
import { QueryError } from '../query_errors.ts';
import { cohortBreakdownOf } from '../breakdowns.ts';
import {
  checkFunnel,
  type FunnelContext,
  type FunnelPlan,
  numbersBetween,
  otherName,
  planFunnel,
  storedValue,
} from './plan.ts';
import { funnelRows } from './read_events.ts';
import { depthMeasures, isReached, withRanks } from './results.ts';
import { type Attempts, passThrough, selectFrom } from './rows.ts';
import type { FunnelsQuery } from './schema.ts';
import { comparedSteps, walkBackward, walkInAnyOrder, walkInOrder } from './walks.ts';

/**
 * How far each actor got: one row for each actor (and breakdown value, and interval of a trend) that did a step, with
 * `_actor`, `_value`, `_entrance`, `_depth` and the times of the steps `_t1`, `_t2`, …, null for steps that were not
 * done.
 * @throws QueryError
 */
export function funnelActorRows(plan: FunnelPlan, about: FunnelContext): Select {
  const rows = funnelRows(plan, about);
  const isInOrder = plan.order !== 'unordered';
  if (plan.splitsByEntry && isInOrder && !plan.walksByEntry) return walkBackward(plan, rows);
  const attempts = isInOrder ? walkInOrder(plan, rows) : walkInAnyOrder(plan, rows);
  const best = bestAttempts(plan, attempts);
  return isInOrder || plan.splitsByEntry ? best : sortTimes(plan, best);
}

const timesOf = ({ length }: FunnelPlan): readonly string[] =>
  numbersBetween(1, length).map((step) => `_t${step}`);

/**
 * Selects an actor's first attempt of maximum depth. Actors whose attempts are all barred by exclusions are dropped.
 */
function bestAttempts(plan: FunnelPlan, { select, keys, order, extraColumns }: Attempts): Select {
  const hasExclusions = plan.guarded.length > 0;
  const names = [...keys, ...extraColumns, '_depth', ...timesOf(plan)];
  const keySql = keys.map((name) => `r.${name}`).join(', ');
  const by = [
    'r._depth desc',
    ...(hasExclusions ? ['r._counts desc'] : []),
    ...order.map((name) => `r.${name}`),
  ];
  const best = selectFrom(
    select,
    [
      `distinct on (${keySql}) ${[...passThrough(names), ...(hasExclusions ? ['r._counts as _counts'] : [])].join(', ')}`,
    ],
    { rest: `order by ${[keySql, ...by].join(', ')}` },
  );
  return hasExclusions ? selectFrom(best, passThrough(names), { where: 'r._counts' }) : best;
}

/** Later than any event. */
const never = "TIMESTAMP '9999-12-31 00:00:00'";

/** Sorts the times of steps that were done in any order, by an odd-even transposition sort. */
function sortTimes(plan: FunnelPlan, best: Select): Select {
  const times = timesOf(plan);
  const others = ['_actor', ...(plan.attribution === null ? [] : ['_value']), '_depth'];
  let sorted = selectFrom(best, [
    ...passThrough(others),
    ...times.map((name) => `ifNull(r.${name}, ${never}) as ${name}`),
  ]);
  for (let round = 0; round < times.length; round += 1) {
    const columns = times.map((name, index) => {
      const isUpper = index % 2 === round % 2;
      const neighbour = times[isUpper ? index + 1 : index - 1];
      return neighbour === undefined
        ? `r.${name} as ${name}`
        : `${isUpper ? 'least' : 'greatest'}(r.${name}, r.${neighbour}) as ${name}`;
    });
    // OFFSET keeps PostgreSQL from inlining each round into the next one.
    sorted = selectFrom(sorted, [...passThrough(others), ...columns], { rest: 'offset 0' });
  }
  return selectFrom(sorted, [
    ...passThrough(others),
    ...times.map((name, index) => `if(r._depth > ${index}, r.${name}, null) as ${name}`),
  ]);
}

/** The point of a funnel whose actors are selected: fields of a FunnelsActorsQuery. */
export interface FunnelPoint {
  /** n from 1: actors that did step n; -n from -2: actors that did step n - 1 but not n. */
  readonly funnelStep?: number | null | undefined;
  /** A breakdown value as in results. */
  readonly funnelStepBreakdown?: string | number | readonly (string | number)[] | null | undefined;
  /** For a trend: actors that did not convert instead of those that did. */
  readonly funnelTrendsDropOff?: boolean | null | undefined;
  /** For a trend: the start of the interval, as a date or time in the project's zone. */
  readonly funnelTrendsEntrancePeriodStart?: string | null | undefined;
}

/**
 * The actors behind a point of a funnel: one row each with the column `actor_id`, as many as the point counts.
 * @throws QueryError
 */
export function funnelActors(query: FunnelsQuery, point: FunnelPoint, context: FunnelContext): Select {
  checkFunnel(query);
  const breakdown = cohortBreakdownOf(query.breakdownFilter);
  const cohort = breakdown && cohortOfPoint(point.funnelStepBreakdown, 'query__source__funnelStepBreakdown');
  const plan = planFunnel(query, cohort);
  const actors = funnelActorRows(plan, context);
  const condition = plan.splitsByEntry ? trendCondition(plan, point) : stepCondition(plan, point);
  const entrance = plan.splitsByEntry ? { entrance: { value: entryIntervalOf(plan, point, context) } } : {};
  const value = point.funnelStepBreakdown;
  const columns = ['distinct r._actor as actor_id'];
  if (value === null || value === undefined || plan.attribution === null)
    return selectFrom(actors, columns, { where: condition, parts: entrance });
  if (!isOther(value)) {
    const parts = { ...entrance, value: { value: storedValue(plan, value) } };
    return selectFrom(actors, columns, { where: `${condition} and r._value = {value}`, parts });
  }
  const names = [
    '_actor',
    '_depth',
    ...(plan.splitsByEntry ? ['_entrance'] : numbersBetween(1, plan.length).map((step) => `_t${step}`)),
  ];
  const measures = plan.splitsByEntry
    ? [`countIf(r._depth >= ${comparedSteps(plan).from})`]
    : depthMeasures(plan);
  const parts = { ...entrance, other: { value: otherName } };
  return selectFrom(withRanks(plan, actors, names, measures), columns, {
    where: `${condition} and ifNull(r._shown, {other}) = {other}`,
    parts,
  });
}

const isOther = (value: NonNullable<FunnelPoint['funnelStepBreakdown']>): boolean =>
  typeof value === 'object' ? value.length === 1 && value[0] === otherName : value === otherName;

const invalid = (message: string, attr: string): QueryError =>
  new QueryError('invalid_input', message, { attr: `query__source__${attr}` });

function stepCondition(plan: FunnelPlan, { funnelStep }: FunnelPoint): string {
  if (funnelStep === null || funnelStep === undefined)
    throw invalid('funnelStep is required for the actors of a funnel.', 'funnelStep');
  const step = Math.abs(funnelStep);
  if (!Number.isInteger(funnelStep) || step < 1 || step > plan.length || funnelStep === -1)
    throw invalid(
      `funnelStep must be between 1 and ${plan.length}, or between -${plan.length} and -2 for actors that dropped off before that step.`,
      'funnelStep',
    );
  if (funnelStep > 0) return isReached(plan, step);
  return `${isReached(plan, step - 1)} and not (${isReached(plan, step)})`;
}

function trendCondition(plan: FunnelPlan, { funnelTrendsDropOff }: FunnelPoint): string {
  const { from, to } = comparedSteps(plan);
  const reached = funnelTrendsDropOff ? `r._depth >= ${from} and r._depth < ${to}` : `r._depth >= ${to}`;
  return `r._entrance = {entrance} and ${reached}`;
}

/** The start of the interval that the point names. */
function entryIntervalOf(plan: FunnelPlan, point: FunnelPoint, context: FunnelContext): string {
  const attr = 'funnelTrendsEntrancePeriodStart';
  const text = point.funnelTrendsEntrancePeriodStart;
  const { interval, dateRange } = plan.query;
  const date = parseAbsoluteDate(text ?? '');
  if (date === null)
    throw invalid(`${attr} is required for the actors of a trend, such as 2026-11-21.`, attr);
  const { buckets, from } = resolveRange(dateRange, interval, context);
  const moment = momentOfDate(date, from.zone, 'first');
  const bucket = buckets.findLast((one) => one <= moment);
  if (bucket === undefined) throw invalid(`${attr} is before the query's date range.`, attr);
  return bucket.toUTC().toISO() ?? '';
}

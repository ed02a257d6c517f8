/** Counts of events, or of actors and sessions. */
const countKinds = ['total', 'dau', 'weekly_active', 'monthly_active', 'unique_session'] as const;

/** Statistics of a numeric property. */
const propertyKinds = ['avg', 'sum', 'min', 'max', 'median', 'p75', 'p90', 'p95', 'p99'] as const;
export type PropertyMath = (typeof propertyKinds)[number];

/** Statistics of the number of events per person. */
const perActorKinds = [
  ...(['avg_count_per_actor', 'min_count_per_actor', 'max_count_per_actor'] as const),
  ...(['median_count_per_actor', 'p75_count_per_actor', 'p90_count_per_actor'] as const),
  ...(['p95_count_per_actor', 'p99_count_per_actor'] as const),
] as const;

/** First events of persons: among all with the name, or among those that match the filters. */
const firstTimeKinds = ['first_time_for_user', 'first_matching_event_for_user'] as const;

export const mathKinds = [
  ...countKinds,
  ...propertyKinds,
  ...perActorKinds,
  ...firstTimeKinds,
  ...(['unique_group', 'hogql'] as const),
] as const;
export type MathKind = (typeof mathKinds)[number];

export const isPropertyMath = (math: MathKind): math is PropertyMath =>
  (propertyKinds as readonly string[]).includes(math);
export const isPerActorMath = (math: MathKind): boolean =>
  (perActorKinds as readonly string[]).includes(math);
export const isFirstTimeMath = (math: MathKind): boolean =>
  (firstTimeKinds as readonly string[]).includes(math);

/** Whether the values of disjoint sets of events add up to that of all: counts and sums. */
export const isAdditive = (math: MathKind): boolean =>
  math === 'sum' || !(isPropertyMath(math) || isPerActorMath(math) || math === 'hogql');

/** The dialect expression of each statistic over `{x}`. */
export const statistics: Readonly<Record<PropertyMath, string>> = {
  avg: 'avg({x})',
  sum: 'sum({x})',
  min: 'min({x})',
  max: 'max({x})',
  median: 'quantile(0.5)({x})',
  p75: 'quantile(0.75)({x})',
  p90: 'quantile(0.9)({x})',
  p95: 'quantile(0.95)({x})',
  p99: 'quantile(0.99)({x})',
};

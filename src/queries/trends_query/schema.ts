import * as z from 'zod';
import type { Interval } from '../buckets.ts';
import { actionsNodeFields, eventsNodeFields, nodeSchema } from '../nodes.ts';
import { ignoredFields, insightFields } from '../query_fields.ts';
import { breakdownFilterSchema } from '../breakdowns.ts';

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

const mathKinds = [
  ...countKinds,
  ...propertyKinds,
  ...perActorKinds,
  ...firstTimeKinds,
  ...(['unique_group', 'hogql'] as const),
] as const;
type MathKind = (typeof mathKinds)[number];

export const isPropertyMath = (math: MathKind): math is PropertyMath =>
  (propertyKinds as readonly string[]).includes(math);
export const isPerActorMath = (math: MathKind): boolean =>
  (perActorKinds as readonly string[]).includes(math);
export const isFirstTimeMath = (math: MathKind): boolean =>
  (firstTimeKinds as readonly string[]).includes(math);

/** Whether the values of disjoint sets of events add up to that of all: counts and sums. */
export const isAdditive = (math: MathKind): boolean =>
  math === 'sum' || !(isPropertyMath(math) || isPerActorMath(math) || math === 'hogql');

/** Length of the window of a math in days, including the day itself; null for a math without a window. */
export function windowDays(math: MathKind): number | null {
  if (math === 'weekly_active') return 7;
  return math === 'monthly_active' ? 30 : null;
}

/** The same for a number of each interval; null also where the window is no longer than the interval. */
export function windowDaysWithin(math: MathKind, interval: Interval): number | null {
  const days = windowDays(math);
  return interval === 'month' || (interval === 'week' && days === 7) ? null : days;
}

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

const flags = [
  ...(['showLegend', 'showAlertThresholdLines', 'showValuesOnSeries', 'showLabelsOnSeries'] as const),
  ...(['showPercentStackView', 'showMultipleYAxes', 'showTrendLines', 'showConfidenceIntervals'] as const),
  ...(['showMovingAverage', 'excludeBoxPlotOutliers'] as const),
] as const;
const strings = [
  ...([
    'aggregationAxisFormat',
    'aggregationAxisPrefix',
    'aggregationAxisPostfix',
    'yAxisScaleType',
  ] as const),
  ...(['layout', 'resultCustomizationBy', 'detailedResultsAggregationType'] as const),
] as const;
const numbers = ['decimalPlaces', 'minDecimalPlaces', 'confidenceLevel', 'movingAverageIntervals'] as const;
const jsonFields = ['hiddenLegendIndexes', 'hiddenLegendKeys', 'resultCustomizations', 'goalLines'] as const;

const fieldsOf = <Name extends string, Schema>(
  names: readonly Name[],
  schema: Schema,
): Record<Name, Schema> => Object.fromEntries(names.map((name) => [name, schema])) as Record<Name, Schema>;

/** Fields of trendsFilter that affect presentation only. */
const presentationFields = {
  ...fieldsOf(flags, z.boolean().nullish()),
  ...fieldsOf(strings, z.string().nullish()),
  ...fieldsOf(numbers, z.number().nullish()),
  ...fieldsOf(jsonFields, z.json().nullish()),
};

/** Their names, which the cache key leaves out. */
const presentationNames: ReadonlySet<string> = new Set(Object.keys(presentationFields));

const groupTypeIndex = z.number().int().min(0).max(4);

const mathFields = {
  math: z
    .enum([...mathKinds, 'dialect'])
    .transform((math) => (math === 'dialect' ? 'hogql' : math))
    .nullish()
    .transform((math) => math ?? 'total'),
  /** The property that `avg` and similar aggregate; `$session_duration` is a session's length in seconds. */
  math_property: z.string().nullish(),
  math_property_type: z.string().nullish(),
  /** A factor for each number. */
  math_multiplier: z.number().nullish(),
  /** An aggregate expression over the events of an interval. */
  math_hogql: z.string().nullish(),
  math_dialect: z.string().nullish(),
  /** The type of groups that `unique_group` counts. */
  math_group_type_index: groupTypeIndex.nullish(),
  math_property_revenue_currency: z.null().optional(),
};

type MathAliases = {
  readonly math_hogql?: string | null | undefined;
  readonly math_dialect?: string | null | undefined;
};

/** Merges both spellings of the field. */
function withOneName<Node extends MathAliases>({ math_dialect, ...node }: Node): Omit<Node, 'math_dialect'> {
  return { ...node, math_hogql: node.math_hogql ?? math_dialect ?? null };
}

/** A series of a trend: which events, and what is counted. */
const trendsSeriesSchema = nodeSchema(
  z.strictObject({ ...eventsNodeFields, ...mathFields }).transform(withOneName),
  z.strictObject({ ...actionsNodeFields, ...mathFields }).transform(withOneName),
);
export type TrendsSeries = z.infer<typeof trendsSeriesSchema>;

/** Displays by their data: lines over time, cumulative lines, and one value for the whole range. */
const displays = {
  timeSeries: [
    'ActionsLineGraph',
    'ActionsBar',
    'ActionsStackedBar',
    'ActionsUnstackedBar',
    'ActionsAreaGraph',
  ],
  cumulative: ['ActionsLineGraphCumulative'],
  totalValue: ['BoldNumber', 'ActionsPie', 'ActionsBarValue', 'ActionsTable', 'WorldMap'],
} as const;

export type DisplayForm = keyof typeof displays;

const displaySchema = z.enum([...displays.timeSeries, ...displays.cumulative, ...displays.totalValue]);

/** The form of the data for a display. */
export function displayFormOf(display: z.infer<typeof displaySchema> | null | undefined): DisplayForm {
  if (display === 'ActionsLineGraphCumulative') return 'cumulative';
  const totals: readonly string[] = displays.totalValue;
  return display && totals.includes(display) ? 'totalValue' : 'timeSeries';
}

const formulaNodeSchema = z.strictObject({ formula: z.string(), custom_name: z.string().nullish() });

const trendsFilterSchema = z.strictObject({
  formula: z.string().nullish(),
  formulas: z.array(z.string()).max(20).nullish(),
  formulaNodes: z.array(formulaNodeSchema).max(20).nullish(),
  display: displaySchema.nullish(),
  /** Number of points of the moving average. */
  smoothingIntervals: z.number().int().min(1).max(1_000).nullish(),
  ...presentationFields,
});

const fieldsSchema = z.strictObject({
  kind: z.literal('TrendsQuery'),
  series: z
    .array(trendsSeriesSchema)
    .min(1, 'At least one series is required.')
    .max(26, 'At most 26 series are supported.'),
  ...insightFields,
  breakdownFilter: breakdownFilterSchema.nullish(),
  compareFilter: z
    .strictObject({ compare: z.boolean().nullish(), compare_to: z.string().nullish() })
    .nullish(),
  trendsFilter: trendsFilterSchema.nullish(),
  /** The type of groups of series with the math `unique_group` that name none. Others count the same without it. */
  aggregation_group_type_index: groupTypeIndex.nullish(),
  conversionGoal: z.null('Conversion goals are not supported in trends.').optional(),
  ...ignoredFields,
});

/** A query of the kind TrendsQuery. */
export const trendsQuerySchema = fieldsSchema.transform((query) => ({
  ...query,
  series: query.series.map((series) =>
    series.math === 'unique_group'
      ? {
          ...series,
          math_group_type_index: series.math_group_type_index ?? query.aggregation_group_type_index,
        }
      : series,
  ),
}));
export type TrendsQuery = z.infer<typeof trendsQuerySchema>;

/** Removes fields that are null or empty objects. */
function withoutEmpty(value: object): Record<string, unknown> | undefined {
  const fields = Object.entries<unknown>({ ...value }).filter(
    ([, inner]) =>
      inner !== null &&
      inner !== undefined &&
      !(typeof inner === 'object' && Object.keys(inner).length === 0),
  );
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}

/**
 * The parts of a query that its result depends on. Displays with the same numbers are equal; a world map has more
 * breakdown values.
 */
export function normalizeForCache(query: TrendsQuery): Record<string, unknown> {
  const { series, breakdownFilter, compareFilter, trendsFilter, dateRange } = query;
  const { display, ...filter } = trendsFilter ?? {};
  const form = displayFormOf(display);
  const remaining = Object.fromEntries(
    Object.entries(filter).filter(([name]) => !presentationNames.has(name)),
  );
  return {
    series: series.map((one) => withoutEmpty({ ...one, response: null, version: null })),
    interval: query.interval,
    dateRange: withoutEmpty(dateRange ?? {}),
    properties: query.properties,
    filterTestAccounts: query.filterTestAccounts,
    samplingFactor: query.samplingFactor,
    breakdownFilter: withoutEmpty(breakdownFilter ?? {}),
    compareFilter: withoutEmpty(compareFilter ?? {}),
    trendsFilter: withoutEmpty({
      ...remaining,
      display: form === 'timeSeries' ? null : form,
      isMap: display === 'WorldMap' ? true : null,
    }),
  };
}

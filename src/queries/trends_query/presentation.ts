import { z } from 'zod';

const flags = [
  ...(['showLegend', 'showAlertThresholdLines', 'showValuesOnSeries', 'showLabelsOnSeries'] as const),
  ...(['showPercentStackView', 'showMultipleYAxes', 'showTrendLines', 'showConfidenceIntervals'] as const),
  ...(['showMovingAverage', 'excludeBoxPlotOutliers'] as const),
] as const;
const texts = [
  ...([
    'aggregationAxisFormat',
    'aggregationAxisPrefix',
    'aggregationAxisPostfix',
    'yAxisScaleType',
  ] as const),
  ...(['layout', 'resultCustomizationBy', 'detailedResultsAggregationType'] as const),
] as const;
const numbers = ['decimalPlaces', 'minDecimalPlaces', 'confidenceLevel', 'movingAverageIntervals'] as const;
const documents = ['hiddenLegendIndexes', 'hiddenLegendKeys', 'resultCustomizations', 'goalLines'] as const;

const membersOf = <Name extends string, Schema>(
  names: readonly Name[],
  schema: Schema,
): Record<Name, Schema> => Object.fromEntries(names.map((name) => [name, schema])) as Record<Name, Schema>;

/** Members of trendsFilter that only change how an answer looks. */
export const presentationMembers = {
  ...membersOf(flags, z.boolean().nullish()),
  ...membersOf(texts, z.string().nullish()),
  ...membersOf(numbers, z.number().nullish()),
  ...membersOf(documents, z.json().nullish()),
};

/** Their names. */
export const presentationNames: ReadonlySet<string> = new Set(Object.keys(presentationMembers));

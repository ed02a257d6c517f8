import { z } from 'zod';

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
export const presentationFields = {
  ...fieldsOf(flags, z.boolean().nullish()),
  ...fieldsOf(strings, z.string().nullish()),
  ...fieldsOf(numbers, z.number().nullish()),
  ...fieldsOf(jsonFields, z.json().nullish()),
};

/** Their names, which the cache key leaves out. */
export const presentationNames: ReadonlySet<string> = new Set(Object.keys(presentationFields));

import { z } from 'zod';
import { insightFields } from '../insight_fields.ts';
import { ignoredFields } from '../ignored_fields.ts';
import { breakdownFilterSchema } from '../breakdowns/schema.ts';
import { presentationFields } from './presentation.ts';
import { trendsSeriesSchema } from './series_schema.ts';

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

/** A query of the kind TrendsQuery. */
export const trendsQuerySchema = z.strictObject({
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
  aggregation_group_type_index: z
    .null('Use math unique_group with math_group_type_index to count groups.')
    .optional(),
  conversionGoal: z.null('Conversion goals are not supported in trends.').optional(),
  ...ignoredFields,
});
export type TrendsQuery = z.infer<typeof trendsQuerySchema>;

import { z } from 'zod';
import { insightFields } from '../insight_fields.ts';
import { ignoredFields } from '../ignored_fields.ts';
import { breakdownFilterSchema } from '../breakdowns/schema.ts';
import { presentationFields } from './presentation.ts';
import { trendsSeriesSchema } from './series_schema.ts';

/** Lines over time, the same summed up from interval to interval, and one value for the whole range. */
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

/** What the answer of a query holds. */
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
  /** Over how many points, up to each, the lines are averaged. */
  smoothingIntervals: z.number().int().min(1).max(1_000).nullish(),
  ...presentationFields,
});

/** A query of the kind TrendsQuery. */
export const trendsQuerySchema = z.strictObject({
  kind: z.literal('TrendsQuery'),
  series: z
    .array(trendsSeriesSchema)
    .min(1, 'At least one series is needed.')
    .max(26, 'At most 26 series are possible.'),
  ...insightFields,
  breakdownFilter: breakdownFilterSchema.nullish(),
  compareFilter: z
    .strictObject({ compare: z.boolean().nullish(), compare_to: z.string().nullish() })
    .nullish(),
  trendsFilter: trendsFilterSchema.nullish(),
  aggregation_group_type_index: z
    .null('Groups are counted by the math unique_group with math_group_type_index.')
    .optional(),
  conversionGoal: z.null('Conversion goals are not supported in trends.').optional(),
  ...ignoredFields,
});
export type TrendsQuery = z.infer<typeof trendsQuerySchema>;

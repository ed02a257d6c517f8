import { z } from 'zod';
import { insightFields } from '../insight_fields.ts';
import { breakdownFilterSchema } from '../breakdowns/schema.ts';
import { ignoredFields } from '../ignored_fields.ts';
import { funnelsFilterSchema } from './filter_schema.ts';
import { funnelStepSchema } from './step_schema.ts';

/** More steps than people can follow; each costs one more pass over the rows. */
const maxSteps = 20;

/** A query of the kind FunnelsQuery. */
export const funnelsQuerySchema = z.strictObject({
  kind: z.literal('FunnelsQuery'),
  series: z
    .array(funnelStepSchema)
    .min(2, 'Funnels require at least two steps.')
    .max(maxSteps, `A funnel has at most ${maxSteps} steps.`),
  ...insightFields,
  breakdownFilter: breakdownFilterSchema.nullish(),
  funnelsFilter: funnelsFilterSchema,
  /** Which kind of groups goes through the funnel instead of persons. */
  aggregation_group_type_index: z
    .number()
    .int()
    .min(0)
    .max(4)
    .nullish()
    .transform((index) => index ?? null),
  ...ignoredFields,
});
export type FunnelsQuery = z.infer<typeof funnelsQuerySchema>;

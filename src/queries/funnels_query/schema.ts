import { z } from 'zod';
import { insightFields } from '../insight_fields.ts';
import { breakdownFilterSchema } from '../breakdowns/schema.ts';
import { ignoredFields } from '../ignored_fields.ts';
import { funnelsFilterSchema } from './filter_schema.ts';
import { funnelStepSchema } from './step_schema.ts';

/** More steps than a chart can show; each costs one more pass over the rows. */
const maxSteps = 20;

/** A query of the kind FunnelsQuery. */
export const funnelsQuerySchema = z.strictObject({
  kind: z.literal('FunnelsQuery'),
  series: z
    .array(funnelStepSchema)
    .min(2, 'Funnels require at least two steps.')
    .max(maxSteps, `Funnels support at most ${maxSteps} steps.`),
  ...insightFields,
  breakdownFilter: breakdownFilterSchema.nullish(),
  funnelsFilter: funnelsFilterSchema,
  /** The type of groups to use as actors instead of persons. */
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

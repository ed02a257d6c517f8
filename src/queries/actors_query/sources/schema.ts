import { z } from 'zod';
import { dialectQuerySchema } from '../../dialect_query/schema.ts';
import { chooseSchema } from '../../choose_schema.ts';
import { funnelsQuerySchema } from '../../funnels_query/schema.ts';
import { trendsQuerySchema } from '../../trends_query/schema.ts';

const fields = {
  /** Recordings of what actors did are not known here. */
  includeRecordings: z
    .literal(false, 'Recordings are not supported here: query session_replay_events.')
    .nullish(),
  response: z.unknown().optional(),
  modifiers: z.looseObject({}).nullish(),
  tags: z.looseObject({}).nullish(),
  version: z.number().nullish(),
};

const oneValue = z.union([z.string(), z.number()], 'This must be a text or a number.');
const breakdownValue = chooseSchema((value) => Array.isArray(value), z.array(oneValue), oneValue);

/** Who is behind one point of an answer of trends. */
export const insightActorsSchema = z.strictObject({
  kind: z.literal('InsightActorsQuery'),
  source: oneOfKinds({ TrendsQuery: trendsQuerySchema }),
  /** One of `days` of the answer; not of a display that has one value for the whole range. */
  day: z.union([z.string(), z.number()]).nullish(),
  series: z.number().int().min(0).nullish(),
  breakdown: breakdownValue.nullish(),
  compare: z.enum(['current', 'previous']).nullish(),
  status: z.null('Only lifecycles have a status, and they are not supported.').optional(),
  interval: z.null('Only retention has intervals to choose, and it is not supported.').optional(),
  ...fields,
});
export type InsightActorsQuery = z.infer<typeof insightActorsSchema>;

/** Who is behind one number of an answer of a funnel. */
const funnelsActorsSchema = z.strictObject({
  kind: z.literal('FunnelsActorsQuery'),
  source: oneOfKinds({ FunnelsQuery: funnelsQuerySchema }),
  /** From 1: who came at least so far; -2 and less: who came up to the step before it and no further. */
  funnelStep: z.number().int().nullish(),
  funnelStepBreakdown: breakdownValue.nullish(),
  funnelTrendsDropOff: z.boolean().nullish(),
  funnelTrendsEntrancePeriodStart: z.string().nullish(),
  ...fields,
});
export type FunnelsActorsQuery = z.infer<typeof funnelsActorsSchema>;

/** Queries that actors can be asked of. */
export const actorsSourceSchema = oneOfKinds({
  DialectQuery: dialectQuerySchema,
  InsightActorsQuery: insightActorsSchema,
  FunnelsActorsQuery: funnelsActorsSchema,
});
export type ActorsSource = z.infer<typeof actorsSourceSchema>;

type Schemas = Readonly<Record<string, z.ZodType>>;

/** One of several schemas, told apart by the member `kind`; what is wrong then names the member at fault. */
function oneOfKinds<Of extends Schemas>(schemas: Of): z.ZodType<z.infer<Of[keyof Of]>> {
  return z.unknown().transform((value, context): z.infer<Of[keyof Of]> => {
    const given: Record<string, unknown> = typeof value === 'object' && value !== null ? { ...value } : {};
    if (given.kind === 'HogQLQuery') given.kind = 'DialectQuery';
    const schema = typeof given.kind === 'string' ? schemas[given.kind] : undefined;
    if (schema === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['kind'],
        message: `Actors are known of these kinds alone here: ${Object.keys(schemas).join(', ')}.`,
      });
      return z.NEVER;
    }
    const parsed = schema.safeParse(given);
    if (parsed.success) return parsed.data as z.infer<Of[keyof Of]>;
    for (const issue of parsed.error.issues) context.addIssue({ ...issue });
    return z.NEVER;
  });
}

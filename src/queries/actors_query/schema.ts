import * as z from 'zod';
import {
  chooseSchema,
  type PropertyFilters,
  propertyFiltersSchema,
  textValue,
} from '../../filters/schema.ts';
import { dialectQuerySchema } from '../dialect_query/schema.ts';
import { funnelsQuerySchema } from '../funnels_query/schema.ts';
import { ignoredFields } from '../query_fields.ts';
import { trendsQuerySchema } from '../trends_query/schema.ts';

const fields = {
  /** Recordings of actors are not supported. */
  includeRecordings: z
    .literal(false, 'Recordings are not supported. Query session_replay_events in the dialect.')
    .nullish(),
  response: z.unknown().optional(),
  modifiers: z.looseObject({}).nullish(),
  tags: z.looseObject({}).nullish(),
  version: z.number().nullish(),
};

const oneValue = z.union([z.string(), z.number()], 'This must be a string or a number.');
const breakdownValue = chooseSchema((value) => Array.isArray(value), z.array(oneValue), oneValue);

/** The actors behind one point of a trend. */
export const insightActorsSchema = z.strictObject({
  kind: z.literal('InsightActorsQuery'),
  source: oneOfKinds({ TrendsQuery: trendsQuerySchema }),
  /** One of `days` of the result; not for a display with one value for the whole range. */
  day: z.union([z.string(), z.number()]).nullish(),
  series: z.number().int().min(0).nullish(),
  breakdown: breakdownValue.nullish(),
  compare: z.enum(['current', 'previous']).nullish(),
  status: z.null('status is only for lifecycle queries, which are not supported.').optional(),
  interval: z.null('interval is only for retention queries, which are not supported.').optional(),
  ...fields,
});
export type InsightActorsQuery = z.infer<typeof insightActorsSchema>;

/** The actors behind one number of a funnel. */
const funnelsActorsSchema = z.strictObject({
  kind: z.literal('FunnelsActorsQuery'),
  source: oneOfKinds({ FunnelsQuery: funnelsQuerySchema }),
  /** n from 1: actors that reached step n; -n from -2: actors that reached step n - 1 but not n. */
  funnelStep: z.number().int().nullish(),
  funnelStepBreakdown: breakdownValue.nullish(),
  funnelTrendsDropOff: z.boolean().nullish(),
  funnelTrendsEntrancePeriodStart: z.string().nullish(),
  ...fields,
});
export type FunnelsActorsQuery = z.infer<typeof funnelsActorsSchema>;

/** Queries that actors can be selected from. */
const actorsSourceSchema = oneOfKinds({
  DialectQuery: dialectQuerySchema,
  InsightActorsQuery: insightActorsSchema,
  FunnelsActorsQuery: funnelsActorsSchema,
});
export type ActorsSource = z.infer<typeof actorsSourceSchema>;

type Schemas = Readonly<Record<string, z.ZodType>>;

/** Parses with the schema for the field `kind`; the issues then name the field at fault. */
function oneOfKinds<Of extends Schemas>(schemas: Of): z.ZodType<z.infer<Of[keyof Of]>> {
  return z.unknown().transform((value, context): z.infer<Of[keyof Of]> => {
    const query: Record<string, unknown> = typeof value === 'object' && value !== null ? { ...value } : {};
    if (query.kind === 'HogQLQuery') query.kind = 'DialectQuery';
    const schema = typeof query.kind === 'string' ? schemas[query.kind] : undefined;
    if (schema === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['kind'],
        message: `Unsupported kind. Supported kinds: ${Object.keys(schemas).join(', ')}.`,
      });
      return z.NEVER;
    }
    const parsed = schema.safeParse(query);
    if (parsed.success) return parsed.data as z.infer<Of[keyof Of]>;
    for (const issue of parsed.error.issues) context.addIssue({ ...issue });
    return z.NEVER;
  });
}

const actorFilters = propertyFiltersSchema
  .nullish()
  .transform((filters): PropertyFilters | null => filters ?? null);

/** A query of the kind ActorsQuery. */
export const actorsQuerySchema = z.strictObject({
  kind: z.literal('ActorsQuery'),
  /** The actors behind a result; by default all persons. */
  source: actorsSourceSchema.nullish(),
  /** Expressions of the dialect, or `person`, `person_display_name`, `person.$delete`; `group` for groups. */
  select: z.array(z.string()).max(100).nullish(),
  search: textValue.nullish(),
  properties: actorFilters,
  fixedProperties: actorFilters,
  orderBy: z.array(z.string()).max(100).nullish(),
  limit: z.number().int().min(1).nullish(),
  offset: z.number().int().min(0).nullish(),
  ...ignoredFields,
});
export type ActorsQuery = z.infer<typeof actorsQuerySchema>;

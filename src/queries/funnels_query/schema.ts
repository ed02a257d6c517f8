import * as z from 'zod';
import { actionsNodeFields, eventsNodeFields, nodeSchema } from '../nodes.ts';
import { ignoredFieldNames, ignoredFields, insightFields } from '../query_fields.ts';
import { breakdownFilterSchema } from '../breakdowns.ts';

const stepFields = {
  /** An optional step can be skipped: the next step can then follow the one before it. */
  optionalInFunnel: z
    .boolean()
    .nullish()
    .transform((optional) => optional ?? false),
  math: z.literal('total', 'Funnels count actors. Omit math in funnel steps.').nullish(),
};

/** A step of a funnel. */
const funnelStepSchema = nodeSchema(
  z.strictObject({ ...eventsNodeFields, ...stepFields }),
  z.strictObject({ ...actionsNodeFields, ...stepFields }),
);
export type FunnelStep = z.infer<typeof funnelStepSchema>;

const rangeFields = { funnelFromStep: z.number().int().min(0), funnelToStep: z.number().int().min(0) };

/** An event that must not happen between two steps, which are counted from 0. */
const funnelExclusionSchema = nodeSchema(
  z.strictObject({ ...eventsNodeFields, ...rangeFields }),
  z.strictObject({ ...actionsNodeFields, ...rangeFields }),
);
export type FunnelExclusion = z.infer<typeof funnelExclusionSchema>;

/** A schema with a default for missing and null fields. */
const withDefault = <Schema extends z.ZodType>(schema: Schema, value: z.output<Schema>) =>
  schema.nullish().transform((given): z.output<Schema> => given ?? value);

/** A whole number, or null. */
const wholeNumber = z
  .number()
  .int()
  .nullish()
  .transform((number) => number ?? null);

/** Fields that affect presentation only. */
const presentationFields = {
  funnelStepReference: z.enum(['total', 'previous']).nullish(),
  layout: z.enum(['horizontal', 'vertical']).nullish(),
  hiddenLegendBreakdowns: z.array(z.string()).nullish(),
  resultCustomizations: z.json().nullish(),
  goalLines: z.json().nullish(),
  showValuesOnSeries: z.boolean().nullish(),
  showTrendLines: z.boolean().nullish(),
};
const presentationNames: ReadonlySet<string> = new Set(Object.keys(presentationFields));

const filterSchema = z
  .strictObject({
    funnelVizType: withDefault(z.enum(['steps', 'time_to_convert', 'trends']), 'steps'),
    funnelOrderType: withDefault(z.enum(['ordered', 'strict', 'unordered']), 'ordered'),
    funnelWindowInterval: withDefault(z.number().int().min(1).max(100_000), 14),
    funnelWindowIntervalUnit: withDefault(
      z.enum(['second', 'minute', 'hour', 'day', 'week', 'month']),
      'day',
    ),
    funnelFromStep: wholeNumber,
    funnelToStep: wholeNumber,
    exclusions: withDefault(z.array(funnelExclusionSchema).max(20), []),
    breakdownAttributionType: withDefault(
      z.enum(['first_touch', 'last_touch', 'all_events', 'step']),
      'first_touch',
    ),
    /** A step, counted from 0; only for the attribution `step`. */
    breakdownAttributionValue: wholeNumber,
    /** The actors of the funnel instead of persons: an expression over an event. */
    funnelAggregateByHogQL: z.string().nullish(),
    funnelAggregateByDialect: z.string().nullish(),
    binCount: wholeNumber,
    ...presentationFields,
  })
  .transform(({ funnelAggregateByDialect, funnelAggregateByHogQL, ...filter }) => ({
    ...filter,
    funnelAggregateByHogQL: funnelAggregateByHogQL ?? funnelAggregateByDialect ?? null,
  }));

/** The options of a funnel. */
const funnelsFilterSchema = z.preprocess((filter) => filter ?? {}, filterSchema);

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

/** The parts of a query that its result depends on. The names of steps are part of the result. */
export function normalizeForCache(query: FunnelsQuery): unknown {
  const requested = Object.entries(query).filter(
    ([name]) => !ignoredFieldNames.has(name) && name !== 'dataColorTheme',
  );
  const filter = Object.entries(query.funnelsFilter).filter(([name]) => !presentationNames.has(name));
  return withoutNulls({ ...Object.fromEntries(requested), funnelsFilter: Object.fromEntries(filter) });
}

/** Removes null fields at any depth. */
function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutNulls);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null && inner !== undefined)
      .map(([name, inner]) => [name, withoutNulls(inner)]),
  );
}

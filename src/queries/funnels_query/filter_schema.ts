import { z } from 'zod';
import { funnelExclusionSchema } from './step_schema.ts';

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
export const presentationNames: ReadonlySet<string> = new Set(Object.keys(presentationFields));

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
export const funnelsFilterSchema = z.preprocess((filter) => filter ?? {}, filterSchema);

import { z } from 'zod';
import { actionsNodeFields, dataWarehouseNodeFields, eventsNodeFields } from '../series/schema.ts';

const stepFields = {
  /** An optional step can be skipped: the next step can then follow the one before it. */
  optionalInFunnel: z
    .boolean()
    .nullish()
    .transform((optional) => optional ?? false),
  math: z.literal('total', 'Funnels count actors. Omit math in funnel steps.').nullish(),
};

/** A step of a funnel. */
export const funnelStepSchema = z.discriminatedUnion('kind', [
  z.strictObject({ ...eventsNodeFields, ...stepFields }),
  z.strictObject({ ...actionsNodeFields, ...stepFields }),
  z.strictObject({ ...dataWarehouseNodeFields, ...stepFields }),
]);
export type FunnelStep = z.infer<typeof funnelStepSchema>;

const rangeFields = { funnelFromStep: z.number().int().min(0), funnelToStep: z.number().int().min(0) };

/** An event that must not happen between two steps, which are counted from 0. */
export const funnelExclusionSchema = z.discriminatedUnion('kind', [
  z.strictObject({ ...eventsNodeFields, ...rangeFields }),
  z.strictObject({ ...actionsNodeFields, ...rangeFields }),
]);
export type FunnelExclusion = z.infer<typeof funnelExclusionSchema>;

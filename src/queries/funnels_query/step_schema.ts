import { z } from 'zod';
import { actionsNodeMembers, dataWarehouseNodeMembers, eventsNodeMembers } from '../series/schema.ts';

const stepMembers = {
  /** Such a step may be left out: the next one also goes on from the one before it. */
  optionalInFunnel: z
    .boolean()
    .nullish()
    .transform((optional) => optional ?? false),
  math: z.literal('total', 'Funnels count actors: leave math out of their steps.').nullish(),
};

/** A step of a funnel. */
export const funnelStepSchema = z.discriminatedUnion('kind', [
  z.strictObject({ ...eventsNodeMembers, ...stepMembers }),
  z.strictObject({ ...actionsNodeMembers, ...stepMembers }),
  z.strictObject({ ...dataWarehouseNodeMembers, ...stepMembers }),
]);
export type FunnelStep = z.infer<typeof funnelStepSchema>;

const rangeMembers = { funnelFromStep: z.number().int().min(0), funnelToStep: z.number().int().min(0) };

/** What must not happen between two steps, which are counted from 0. */
export const funnelExclusionSchema = z.discriminatedUnion('kind', [
  z.strictObject({ ...eventsNodeMembers, ...rangeMembers }),
  z.strictObject({ ...actionsNodeMembers, ...rangeMembers }),
]);
export type FunnelExclusion = z.infer<typeof funnelExclusionSchema>;

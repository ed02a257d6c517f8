import { z } from 'zod';
import { weekStartDays } from '../accounts.ts';

/** A project in a response. */
export const projectSchema = z
  .object({
    id: z.number().int(),
    name: z.string(),
    timezone: z.string(),
    week_start_day: z.enum(weekStartDays),
    external_id: z
      .string()
      .describe('The `sts:ExternalId` that roles of the project demand, for destinations with `role_arn`.'),
  })
  .meta({ id: 'Project' });

import { z } from 'zod';
import { weekStartDays } from '../accounts.ts';

/** A project in a response. */
export const projectSchema = z
  .object({
    id: z.number().int(),
    name: z.string(),
    timezone: z.string(),
    week_start_day: z.enum(weekStartDays),
  })
  .meta({ id: 'Project' });

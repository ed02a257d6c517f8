import * as z from 'zod';
import { pathId, responseTimestampSchema } from '../schemas.ts';

export const jobPath = z.object({ project_id: z.string(), id: pathId });

/** A job in a response. */
export const jobSchema = z
  .object({
    id: z.string(),
    kind: z.string().describe('What is done, such as `table_check`.'),
    status: z.enum(['pending', 'completed', 'failed']),
    result: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('The body that the request would have returned in time; null until it is completed.'),
    error: z.string().nullable().describe('Why it failed.'),
    created_at: responseTimestampSchema,
    finished_at: responseTimestampSchema.nullable(),
  })
  .meta({ id: 'Job' });
export type JobResponse = z.infer<typeof jobSchema>;

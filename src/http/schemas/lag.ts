import { z } from 'zod';
import { responseTimestampSchema } from './common.ts';
import { runStatuses } from './run.ts';

/** An interval that no automatic retry will fill. */
const gapSchema = z
  .object({
    data_interval_start: responseTimestampSchema,
    data_interval_end: responseTimestampSchema,
    run_id: z.string().describe("The interval's newest run, which can be retried."),
    status: z.enum(runStatuses).describe('The status of that run.'),
  })
  .meta({ id: 'BatchExportGap' });

/** The lag of an export. */
export const lagSchema = z
  .object({
    intervals: z
      .number()
      .int()
      .describe(
        'Ended intervals of the schedule without a Completed run, including those without a run, and all gaps. ' +
          'Excludes intervals that the schedule skips: those that ended while paused, before start_at or after end_at.',
      ),
    seconds: z.number().describe('The total length of those intervals.'),
    last_completed_interval_end: responseTimestampSchema
      .nullable()
      .describe('The end of the newest interval that has a Completed run.'),
    gaps: z
      .array(gapSchema)
      .describe(
        'Intervals whose runs have all ended, none Completed or held, and none with a pending automatic retry. ' +
          'The 100 newest, newest first. Retry the run or backfill the interval.',
      ),
  })
  .meta({ id: 'BatchExportLag' });
export type LagResponse = z.infer<typeof lagSchema>;

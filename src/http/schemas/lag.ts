import { z } from 'zod';
import { responseTimestamp } from './common.ts';
import { runStatuses } from './run.ts';

/** An interval that nothing will fill by itself any more. */
const gapSchema = z
  .object({
    data_interval_start: responseTimestamp,
    data_interval_end: responseTimestamp,
    run_id: z.string().describe("The interval's newest run, which can be retried."),
    status: z.enum(runStatuses).describe('How that run ended.'),
  })
  .meta({ id: 'BatchExportGap' });

/** How far an export is behind. */
export const lagSchema = z
  .object({
    intervals: z
      .number()
      .int()
      .describe(
        'Intervals of the schedule that have ended and have no Completed run, whether a run of them was opened yet or not. ' +
          'Not those that the schedule leaves out: ended while paused, before start_at or after end_at.',
      ),
    seconds: z.number().describe('How long those intervals are together.'),
    last_completed_interval_end: responseTimestamp
      .nullable()
      .describe('The end of the newest interval that has a Completed run.'),
    gaps: z
      .array(gapSchema)
      .describe(
        'Intervals with runs of which none Completed and none is active or will be retried by itself; ' +
          'the 100 newest, newest first. Retry the run, or backfill the interval.',
      ),
  })
  .meta({ id: 'BatchExportLag' });
export type LagResponse = z.infer<typeof lagSchema>;

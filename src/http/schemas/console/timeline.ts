import { z } from 'zod';
import { listTime } from '../../list_times.ts';
import { responseTimestampSchema } from '../common.ts';
import { intervalStatuses } from '../interval.ts';

/** An entry of the interval ledger, as the calendar of an export shows it. */
const timelineEntry = z.object({
  data_interval_start: responseTimestampSchema,
  data_interval_end: responseTimestampSchema,
  intervals: z.number().int().describe('1, or the number of intervals of a range without runs.'),
  status: z.enum(intervalStatuses),
  reason: z.string().nullable(),
  generation: z.number().int().nullable(),
  rows: z.number().int().nullable(),
  bytes: z.number().int().nullable(),
  landed_at: responseTimestampSchema
    .nullable()
    .describe('When the first run of the interval completed; later generations do not change it.'),
});

/** The intervals of an export in a range of time, oldest first. */
export const timelineSchema = z.object({
  now: responseTimestampSchema,
  is_complete: z.boolean().describe('False if older entries of the range were left out.'),
  entries: z.array(timelineEntry),
});
export type TimelineResponse = z.infer<typeof timelineSchema>;

export const timelineQuery = z.strictObject({
  after: listTime.optional().describe('Only intervals that end after this time.'),
  before: listTime.optional().describe('Only intervals that start before this time.'),
});

import { z } from 'zod';
import { responseTimestampSchema } from '../common.ts';
import { runSchema } from '../run.ts';

/** An active run and how fast it exports. */
const activeRun = z.object({
  run: runSchema,
  rows_per_second: z.number().nullable().describe('Over the last minute; null before its first part.'),
  bytes_per_second: z.number().nullable(),
  attempts: z.number().int().describe('How many attempts at its ranges have started.'),
});

/** The oldest active runs of an export, oldest first. */
export const activeRunsSchema = z.object({
  now: responseTimestampSchema,
  total: z.number().int().describe('All active runs, also those that are not listed.'),
  runs: z.array(activeRun),
});
export type ActiveRunsResponse = z.infer<typeof activeRunsSchema>;
export type ActiveRun = z.infer<typeof activeRun>;

const step = z.object({
  at: responseTimestampSchema,
  level: z.enum(['info', 'warning', 'error']),
  summary: z.string(),
  detail: z.string().nullable(),
  range: z.number().int().nullable().describe('The key range of the step; null if it is of the whole run.'),
});
export type RunStep = z.infer<typeof step>;

/** What a run did, as the journal recorded it, oldest first. */
export const runStepsSchema = z.object({
  run: runSchema,
  steps: z.array(step),
  parts: z.number().int(),
  is_complete: z.boolean().describe('False if the newest steps were left out.'),
  throughput: z
    .array(
      z.object({
        at: responseTimestampSchema.describe('The start of the bin.'),
        seconds: z.number(),
        rows: z.number().int(),
        bytes: z.number().int(),
      }),
    )
    .describe('Rows and bytes of the parts, by bins of equal length; bins without parts are left out.'),
});
export type RunStepsResponse = z.infer<typeof runStepsSchema>;

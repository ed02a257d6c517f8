import { z } from 'zod';
import { timestamp } from '../../journal/commands.ts';
import { pathId, responseTimestamp } from './common.ts';

/** A backfill as it is answered. */
export const backfillSchema = z
  .object({
    id: z.string(),
    batch_export: z.string(),
    team_id: z.number().int(),
    start_at: responseTimestamp,
    end_at: responseTimestamp,
    status: z.enum(['Running', 'Paused', 'Completed', 'Cancelled']),
    retry_of_run_id: z.string().nullable().describe('The run that is retried, when it is the retry of one.'),
    created_at: responseTimestamp,
    finished_at: responseTimestamp.nullable(),
    last_updated_at: responseTimestamp,
    progress: z.object({
      total_runs: z.number().int(),
      finished_runs: z.number().int().describe('Completed, failed, cancelled and retrying ones together.'),
      completed_runs: z.number().int(),
      failed_runs: z
        .number()
        .int()
        .describe('Failed, Terminated, or FailedRetryable or TimedOut without another automatic retry.'),
      cancelled_runs: z.number().int(),
      retrying_runs: z.number().int().describe('Those whose automatic retry is due later, or under way.'),
      progress: z.number().describe('Part of the runs that have ended, from 0 to 1.'),
      records_completed: z.number().int(),
      records_total_count: z.number().int().describe('Of the runs that were opened so far.'),
    }),
  })
  .meta({ id: 'BatchExportBackfill' });
export type BackfillResponse = z.infer<typeof backfillSchema>;

/** Whether a backfill is only asked about. */
export const dryRunField = z
  .boolean()
  .nullish()
  .describe('Only answer what the backfill would export; nothing starts.');

export const createBackfillBody = z.strictObject({
  start_at: timestamp,
  end_at: timestamp,
  dry_run: dryRunField,
});

/** What a backfill would export. */
export const dryRunSchema = z
  .object({
    dry_run: z.literal(true),
    start_at: responseTimestamp.describe('The start of the first whole interval.'),
    end_at: responseTimestamp.describe('The end of the last whole interval.'),
    intervals: z.number().int(),
    rows: z
      .number()
      .int()
      .nullable()
      .describe('Rows that the source has of them now; null when counting took too long.'),
    detail: z.string().nullable().describe('Why the rows were not counted; else null.'),
  })
  .meta({ id: 'BatchExportDryRun' });
export type DryRunResponse = z.infer<typeof dryRunSchema>;

/** The path of what belongs to one batch export. */
export const backfillsPath = z.object({ project_id: z.string(), batch_export_id: pathId });

/** The path of one backfill. */
export const backfillPath = backfillsPath.extend({ id: pathId });

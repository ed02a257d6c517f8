import * as z from 'zod';
import { timestampSchema } from '../../journal/commands.ts';
import { listQuery, pathId, responseTimestampSchema } from '../schemas.ts';

/** A backfill in a response. */
export const backfillSchema = z
  .object({
    id: z.string(),
    batch_export: z.string(),
    team_id: z.number().int(),
    start_at: responseTimestampSchema,
    end_at: responseTimestampSchema,
    status: z.enum(['Running', 'Paused', 'Completed', 'Cancelled']),
    retry_of_run_id: z
      .string()
      .nullable()
      .describe('The run that this backfill retries; null for other backfills.'),
    retries_failed: z
      .boolean()
      .describe('Whether it exports only the intervals of its range whose run failed (`retry_failed`).'),
    is_repair: z
      .boolean()
      .describe(
        'Whether exportd itself created it, to export intervals again whose rows arrived late. An export has one at a time; its range and number of runs grow while it runs.',
      ),
    allow_shrink: z
      .boolean()
      .describe('Whether its runs may remove rows from the bucket that the source no longer has.'),
    only: z
      .literal('missing')
      .nullable()
      .describe('`missing`: it exports only the intervals that had no files when it was requested.'),
    rewrite: z
      .boolean()
      .describe('Whether it also writes intervals anew whose files have the rows of the source.'),
    created_at: responseTimestampSchema,
    finished_at: responseTimestampSchema.nullable(),
    last_updated_at: responseTimestampSchema,
    progress: z
      .object({
        total_runs: z.number().int(),
        finished_runs: z.number().int().describe('Completed, failed, cancelled and retrying runs.'),
        completed_runs: z.number().int(),
        unchanged_runs: z
          .number()
          .int()
          .describe('Completed runs that published nothing, because the bucket had the rows of the source.'),
        failed_runs: z
          .number()
          .int()
          .describe(
            'Runs that are Failed or Terminated, or FailedRetryable or TimedOut without another automatic retry.',
          ),
        cancelled_runs: z.number().int(),
        retrying_runs: z.number().int().describe('Runs whose automatic retry is pending or active.'),
        progress: z.number().describe('Fraction of the runs that have ended, from 0 to 1.'),
        records_completed: z.number().int(),
        records_total_count: z.number().int().describe('Total records of the runs created so far.'),
        done_at: responseTimestampSchema
          .nullable()
          .describe('When it is done at the pace so far; null while that is not known, and unless it runs.'),
      })
      .meta({ id: 'BatchExportBackfillProgress' })
      .nullable()
      .describe('Null for a cancelled backfill, which has no end to progress to.'),
  })
  .meta({ id: 'BatchExportBackfill' });
export type BackfillResponse = z.infer<typeof backfillSchema>;

/** Allows the runs that a request creates to publish fewer rows than their intervals have in the bucket. */
export const allowShrinkField = z
  .boolean()
  .nullish()
  .describe(
    'Export what the source has now, even if rows are missing there that the bucket has: these leave the bucket.',
  );

/** The response to the request that creates a backfill. */
export const createdBackfillSchema = backfillSchema
  .extend({ backfill_id: z.string().describe('The same as `id`, as runs call it.') })
  .meta({ id: 'CreatedBatchExportBackfill' });

/** Requests a preview instead of a backfill. */
export const dryRunField = z
  .boolean()
  .nullish()
  .describe('Preview: return what the backfill would export without starting it.');

/** A bound of the range of a requested backfill: a time, or a date. */
const rangeBound = z.union(
  [timestampSchema, z.iso.date().refine((date) => date >= '1970-01-01' && date < '3000-01-01')],
  'Must be an ISO 8601 time with an offset, such as 2026-11-01T10:00:00Z, between the years 1970 and 3000. For intervals of a day or longer also a date, such as 2026-11-01.',
);

const datesOfRange =
  'For intervals of a day or longer also a date, which is the hour that these start at in the time zone of the export.';

/** The range of a requested backfill. */
export const backfillRange = {
  start_at: rangeBound
    .nullable()
    .describe(`Null: with the interval of the first row that the source has of the model. ${datesOfRange}`),
  end_at: rangeBound.nullable().describe(`Null: until now. ${datesOfRange}`),
};

/** What of its range a requested backfill exports. */
export const backfillScope = {
  only: z
    .literal('missing')
    .nullish()
    .describe('`missing`: only the intervals of the range that have no files, whatever the export owes.'),
  rewrite: z
    .boolean()
    .nullish()
    .describe(
      'Also write intervals anew whose files have the rows that the source has. Without it, and without `allow_shrink`, their runs publish nothing.',
    ),
};

export const createBackfillBody = z.strictObject({
  ...backfillRange,
  ...backfillScope,
  allow_shrink: allowShrinkField,
  dry_run: dryRunField,
});

/** What a backfill would export. */
export const dryRunSchema = z
  .object({
    dry_run: z.literal(true),
    start_at: responseTimestampSchema.describe('The start of the first whole interval.'),
    end_at: responseTimestampSchema.describe('The end of the last whole interval.'),
    intervals: z.number().int(),
    rows: z
      .number()
      .int()
      .nullable()
      .describe('Rows that the source has for these intervals now; null when counting timed out.'),
    seconds: z
      .number()
      .int()
      .nullable()
      .describe('How long it takes at the pace of the newest runs; null before the first one.'),
    detail: z.string().nullable().describe('Why the rows were not counted, or null.'),
  })
  .meta({ id: 'BatchExportDryRun' });
export type DryRunResponse = z.infer<typeof dryRunSchema>;

/** What lists of backfills are sorted by. */
const backfillOrderings = ['created_at', '-created_at', 'start_at', '-start_at'] as const;

export const backfillsQuery = listQuery.extend({
  ordering: z.enum(backfillOrderings).default('-created_at'),
});
export type BackfillsQuery = z.infer<typeof backfillsQuery>;

/** The path of a resource of a batch export. */
export const backfillsPath = z.object({ project_id: z.string(), batch_export_id: pathId });

/** The path of one backfill. */
export const backfillPath = backfillsPath.extend({ id: pathId });

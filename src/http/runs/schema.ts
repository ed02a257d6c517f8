import * as z from 'zod';
import { type RunStatus, runStatusLabels } from '../../domain/run_state.ts';
import { timestampSchema } from '../../journal/commands.ts';
import { limitParameter, pathId, readOnly, repeatable, responseTimestampSchema } from '../schemas.ts';
import { listTime } from '../list_times.ts';

export const runStatuses = Object.keys(runStatusLabels) as RunStatus[];

const status = z.enum(runStatuses).meta({
  id: 'BatchExportRunStatus',
  description: runStatuses.map((value) => `* \`${value}\` - ${runStatusLabels[value]}`).join('\n'),
  'x-enum-labels': runStatusLabels,
});

/** A run in a response. */
export const runSchema = z
  .object({
    id: z.string(),
    status,
    status_detail: z
      .string()
      .nullable()
      .describe(
        'What an active run waits for, such as an unavailable bucket. Of a completed one: that nothing was published, since the bucket had its rows already. Else null.',
      ),
    records_completed: z.number().int().describe('Number of records exported so far.'),
    latest_error: z
      .string()
      .nullable()
      .describe('How the run failed; while it is active, what a step is retried after and until when.'),
    data_interval_start: responseTimestampSchema,
    data_interval_end: responseTimestampSchema,
    cursor: z.string().nullable().describe('Opaque cursor that may be used to resume.'),
    created_at: responseTimestampSchema,
    finished_at: responseTimestampSchema.nullable(),
    last_updated_at: responseTimestampSchema,
    records_total_count: z.number().int().nullable(),
    batch_export: z.string(),
    bytes: z.number().int().describe('Bytes of the completed files and of the parts uploaded since.'),
    files: z.number().int(),
    generation: z
      .number()
      .int()
      .nullable()
      .describe("Counts how often the interval's files were written, from 1; null before the export starts."),
    manifest_key: z.string().nullable(),
    backfill_id: z
      .string()
      .nullable()
      .describe('The backfill or retry that created the run; null for runs of the schedule.'),
    allow_shrink: z
      .boolean()
      .describe(
        'Whether its request allows it to remove rows from the bucket that the source no longer has.',
      ),
    temporal_ui: z.string().nullable().describe("Link to the run's workflow in the Temporal UI."),
  })
  .meta({ id: 'BatchExportRun' });
export type RunResponse = z.infer<typeof runSchema>;

const wholeNumber = z.number().int().nullish();

/** The documented body of a retry: the fields of a run, none of which has an effect. */
export const retryBody = z.strictObject({
  status: z.enum(runStatuses).nullish(),
  records_completed: wholeNumber,
  latest_error: z.string().nullish(),
  data_interval_start: timestampSchema.nullish(),
  data_interval_end: timestampSchema.nullish(),
  cursor: z.string().nullish(),
  finished_at: timestampSchema.nullish(),
  records_total_count: wholeNumber,
  id: readOnly,
  created_at: readOnly,
  last_updated_at: readOnly,
  batch_export: readOnly,
  bytes: readOnly,
  files: readOnly,
  generation: readOnly,
  manifest_key: readOnly,
  backfill_id: readOnly,
  allow_shrink: readOnly,
  status_detail: readOnly,
  temporal_ui: readOnly,
  // Those of runs of PostHog.
  batch_export_on_demand: readOnly,
  backfill: readOnly,
  records_failed: readOnly,
  bytes_exported: readOnly,
});

export const runPath = z.object({ project_id: z.string(), batch_export_id: pathId, id: pathId });

const runOrderings = ['created_at', '-created_at', 'data_interval_start', '-data_interval_start'] as const;

export const runsQuery = z.strictObject({
  limit: limitParameter,
  cursor: z.string().optional(),
  status: repeatable.describe(`One or more of ${runStatuses.join(', ')}, repeated or comma-separated.`),
  after: listTime.optional().describe('Only runs created after this time.'),
  before: listTime.optional().describe('Only runs created before this time.'),
  start: listTime.optional().describe('Only runs whose interval starts at or after this time.'),
  end: listTime.optional().describe('Only runs whose interval ends at or before this time.'),
  created_by: z
    .enum(['schedule', 'backfill'])
    .optional()
    .describe('Only runs of the schedule, or only those of backfills and retries.'),
  ordering: z.enum(runOrderings).default('-created_at'),
});
export type RunsQuery = z.infer<typeof runsQuery>;

/** Which failed runs of the project are retried. */
export const retryFailedBody = z.strictObject({
  since: listTime
    .nullish()
    .describe('Only runs that failed at or after this time, such as -2h. By default all failed runs.'),
  batch_export: pathId
    .nullish()
    .describe('Only runs of this batch export. By default those of all exports of the project.'),
});

const retriedExportSchema = z.object({
  batch_export: z.string(),
  backfill_id: z
    .string()
    .nullable()
    .describe('The backfill of its intervals whose run failed; null if there is none, or not yet.'),
  runs: z.number().int().nullable().describe('The number of these intervals; null while it is not known.'),
  detail: z.string().nullable().describe('Why nothing was started, or not yet.'),
});
/** What was started for one export. */
export type RetriedExport = z.infer<typeof retriedExportSchema>;

/** What was started for the exports of the project that have failed runs. */
export const retryFailedSchema = z
  .object({
    runs: z.number().int().describe('The number of intervals that are exported again.'),
    results: z.array(retriedExportSchema),
  })
  .meta({ id: 'RetriedFailedRuns' });

import { z } from 'zod';
import { runStatusLabels, type RunStatus } from '../../domain/run.ts';
import { timestamp } from '../../journal/commands.ts';
import { limitParameter, pathId, readOnly, repeatable, responseTimestamp } from './common.ts';

export const runStatuses = Object.keys(runStatusLabels) as RunStatus[];

const status = z.enum(runStatuses).meta({
  id: 'BatchExportRunStatus',
  description: runStatuses.map((value) => `* \`${value}\` - ${runStatusLabels[value]}`).join('\n'),
  'x-enum-labels': runStatusLabels,
});

/** A run as it is answered. */
export const runSchema = z
  .object({
    id: z.string(),
    status,
    records_completed: z.number().int().describe('Number of records exported so far.'),
    latest_error: z.string().nullable(),
    data_interval_start: responseTimestamp,
    data_interval_end: responseTimestamp,
    cursor: z.string().nullable().describe('Opaque cursor that may be used to resume.'),
    created_at: responseTimestamp,
    finished_at: responseTimestamp.nullable(),
    last_updated_at: responseTimestamp,
    records_total_count: z.number().int().nullable(),
    batch_export: z.string(),
    bytes: z.number().int().describe('Bytes of the finished objects and of the parts sent since.'),
    files: z.number().int(),
    generation: z
      .number()
      .int()
      .nullable()
      .describe("Which writing of the interval's objects it is; from 1."),
    manifest_key: z.string().nullable(),
    backfill_id: z.string().nullable().describe('The backfill or retry that opened the run.'),
    temporal_ui: z.string().nullable().describe("Link to the run's workflow in the Temporal UI."),
  })
  .meta({ id: 'BatchExportRun' });
export type RunResponse = z.infer<typeof runSchema>;

const wholeNumber = z.number().int().nullish();

/** The documented body of a retry: the run's own members, of which none changes what is retried. */
export const retryBody = z.strictObject({
  status: z.enum(runStatuses).nullish(),
  records_completed: wholeNumber,
  latest_error: z.string().nullish(),
  data_interval_start: timestamp.nullish(),
  data_interval_end: timestamp.nullish(),
  cursor: z.string().nullish(),
  finished_at: timestamp.nullish(),
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
  temporal_ui: readOnly,
});

export const runPath = z.object({ project_id: z.string(), batch_export_id: pathId, id: pathId });

const runOrderings = ['created_at', '-created_at', 'data_interval_start', '-data_interval_start'] as const;

export const runsQuery = z.object({
  limit: limitParameter,
  cursor: z.string().optional(),
  status: repeatable.describe('One or more statuses.'),
  after: timestamp.optional().describe('Only runs created after this time.'),
  before: timestamp.optional().describe('Only runs created before this time.'),
  ordering: z.enum(runOrderings).default('-created_at'),
});
export type RunsQuery = z.infer<typeof runsQuery>;

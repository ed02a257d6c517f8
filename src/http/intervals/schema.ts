import * as z from 'zod';
import { differenceDecisions } from '../../domain/difference.ts';
import type { ComparisonOutcome, SettlingOutcome } from '../../domain/comparison.ts';
import { logLevels } from '../../journal/journal.ts';
import { limitParameter, offsetParameter, repeatable, responseTimestampSchema } from '../schemas.ts';
import { listTime } from '../list_times.ts';

/** Every status of an interval, with its meaning. */
const intervalStatusMeanings = {
  exported: 'its manifest has the rows that the source had',
  running: 'a run is active',
  held: 'its newest run would have removed rows from the bucket, so it stopped; the earlier manifest stays',
  unsettled: 'exported while transactions of the source were open; exportd follows up',
  failed: 'its newest run failed; an automatic retry follows, or an earlier manifest stays',
  gap: 'no manifest, and no automatic retry follows; `reason` is the status of its newest run',
  due: 'ended, and the schedule has not created its run yet',
  paused: 'ended while the export was paused',
  excluded: 'ended before `start_at` or after `end_at`; `reason` says which',
  expired:
    "a lifecycle rule of the bucket has deleted its objects; exported again only on a person's request",
} as const;
export type IntervalStatus = keyof typeof intervalStatusMeanings;
export const intervalStatuses = Object.keys(intervalStatusMeanings) as IntervalStatus[];

const status = z.enum(intervalStatuses).meta({
  id: 'BatchExportIntervalStatus',
  description: intervalStatuses
    .map((value) => `* \`${value}\` - ${intervalStatusMeanings[value]}`)
    .join('\n'),
});

const count = z.number().int().nullable();

const fingerprint = z
  .object({
    hash: z.string(),
    rows: z.number().int(),
    sum: z.string().describe("Sum of the hashes of the rows' ids modulo 2^64."),
  })
  .nullable();

const settlingOutcomes = [
  'same_rows',
  'exported_again',
  'no_late_rows',
  'source_expired',
  'not_exported_again',
] as const satisfies readonly SettlingOutcome[];

const comparisonOutcomes = [
  'equal',
  'rows_added',
  'rows_missing',
  'both',
  'source_expired',
] as const satisfies readonly ComparisonOutcome[];

/** What a person has decided about rows that the files of an interval have and the source lacks. */
export const decisionSchema = z
  .object({
    decision: z.enum(differenceDecisions),
    rows: z.number().int(),
    reason: z.string(),
    by: z.string().nullable().describe('The e-mail address of the user; null if the user was deleted.'),
    at: responseTimestampSchema,
  })
  .nullable()
  .describe(
    'Who has kept or removed rows that the source lacks, and why. Null once other files replace these.',
  );

/** An entry of the interval ledger in a response. */
export const intervalSchema = z
  .object({
    data_interval_start: responseTimestampSchema,
    data_interval_end: responseTimestampSchema,
    intervals: z
      .number()
      .int()
      .describe('1, or the number of intervals of a range without runs: `due`, `paused` or `excluded`.'),
    status,
    reason: z.string().nullable().describe('Why it is a gap, failed, paused or excluded.'),
    latest_error: z.string().nullable().describe('The latest error of the newest run.'),
    run_id: z.string().nullable().describe('The newest run.'),
    manifest_run_id: z.string().nullable().describe('The run that wrote the current manifest.'),
    run_ids: z.array(z.string()).describe('The 10 newest runs, newest first.'),
    generation: count.describe('The generation of the current manifest; null without one.'),
    rows: count.describe('Rows in the files of the current manifest.'),
    rejected_rows: count,
    bytes: count,
    files: count,
    kept_files: count.describe('Files of earlier generations that stay and that readers do not need.'),
    earlier_files: count.describe('Files of earlier generations that stay and that readers of persons need.'),
    source_fingerprint: fingerprint.describe('The rows of the source after they were exported.'),
    bucket_fingerprint: fingerprint.describe('The rows of the files and the rejected rows.'),
    settled: z.boolean().nullable().describe('As in the current manifest.'),
    settling_outcome: z
      .enum(settlingOutcomes)
      .nullable()
      .describe('What followed once the transactions had ended that an unsettled run did not wait for.'),
    completed_at: responseTimestampSchema
      .nullable()
      .describe('When the run of the current manifest completed.'),
    expires_at: responseTimestampSchema
      .nullable()
      .describe(
        'When the bucket deletes objects of the manifest, by its lifecycle rule or `retention_days`.',
      ),
    comparison: z
      .object({
        compared_at: responseTimestampSchema,
        outcome: z.enum(comparisonOutcomes),
        bucket_rows: z.number().int(),
        source_rows: z.number().int(),
        added_rows: z.number().int().describe('At least this many rows are only in the source.'),
        missing_rows: z.number().int().describe('At least this many rows are only in the bucket.'),
        kept: z.boolean().describe('Whether a person has decided to keep the files as they are.'),
      })
      .nullable()
      .describe('The last comparison of the current manifest with the source.'),
    held: z
      .object({
        missing_rows: z.number().int().describe('Rows of the bucket that the source no longer has.'),
        bucket_rows: z.number().int(),
        source_rows: z.number().int(),
      })
      .nullable()
      .describe('Why the interval is held; null if it is not.'),
    decision: decisionSchema,
    taken_keys: z.number().int().describe('Keys of the newest run that other objects in the bucket had.'),
    history_collapsed: z
      .boolean()
      .describe(
        'Whether the runs of the manifest are older than `EXPORTD_HISTORY_RETENTION`, so that only this entry is left of them. It is not compared with the source any more, unless it is verified.',
      ),
  })
  .meta({ id: 'BatchExportInterval' });
export type IntervalResponse = z.infer<typeof intervalSchema>;

/** A current manifest in a response. */
export const manifestSchema = z
  .object({
    data_interval_start: responseTimestampSchema,
    data_interval_end: responseTimestampSchema,
    bucket_name: z.string(),
    key: z.string().describe('Key of the manifest in the bucket.'),
    generation: z.number().int(),
    run_id: z.string().describe('The run that wrote it.'),
    rows: z.number().int(),
    bytes: z.number().int(),
    files: z.number().int(),
    earlier_files: z.number().int().describe('Files of earlier generations that readers of persons need.'),
    completed_at: responseTimestampSchema,
  })
  .meta({ id: 'BatchExportManifest' });

export const manifestsQuery = z.strictObject({
  limit: limitParameter,
  cursor: z.string().optional(),
  since: listTime
    .optional()
    .describe(
      'Only manifests whose run completed at this time or later. To miss none that completes meanwhile, ask with the newest `completed_at` that you have, less a minute, and expect to see some again.',
    ),
});
export type ManifestsQuery = z.infer<typeof manifestsQuery>;

/** How the files of an export are read. */
export const readingSchema = z
  .object({
    bucket_name: z.string(),
    manifests: z.string().describe('The prefix of the keys of the manifests.'),
    recipes: z.array(
      z.object({
        reader: z.string(),
        language: z.enum(['sql', 'python']),
        code: z.string(),
        tested: z.boolean().describe("Whether exportd's tests run it."),
      }),
    ),
  })
  .meta({ id: 'BatchExportReading' });
export type ReadingResponse = z.infer<typeof readingSchema>;

export const intervalsQuery = z.strictObject({
  limit: limitParameter,
  cursor: z.string().optional(),
  status: repeatable.describe(`One or more of ${intervalStatuses.join(', ')}, repeated or comma-separated.`),
  after: listTime.optional().describe('Only intervals that end after this time.'),
  before: listTime.optional().describe('Only intervals that start before this time.'),
});
export type IntervalsQuery = z.infer<typeof intervalsQuery>;

/** A line of an export's log. */
export const logLineSchema = z
  .object({
    timestamp: responseTimestampSchema,
    level: z.enum(logLevels),
    message: z.string(),
    instance_id: z
      .string()
      .nullable()
      .describe('The run of the line; null when it is about the batch export itself.'),
    log_source_id: z.string().describe('The batch export.'),
  })
  .meta({ id: 'LogEntry' });
export type LogLineResponse = z.infer<typeof logLineSchema>;

const runId = z.guid('Must be the UUID of a run.').optional();

const linesQuery = {
  limit: limitParameter,
  offset: offsetParameter,
  level: repeatable.describe(`One or more of ${logLevels.join(', ')}, case-insensitive.`),
  after: listTime.optional().describe('Only lines after this time.'),
  before: listTime.optional().describe('Only lines before this time.'),
  search: z.string().optional().describe('Text that the message contains, case-insensitive.'),
};

/** Which lines of the log of a run are listed. */
export const runLogsQuery = z.strictObject(linesQuery);

export const logsQuery = z.strictObject({
  ...linesQuery,
  run_id: runId,
  instance_id: runId.describe('The same as `run_id`, by the name that lines have for it.'),
});
export type LogsQuery = z.infer<typeof logsQuery>;

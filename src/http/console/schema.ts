import * as z from 'zod';
import { models } from '../../domain/batch_export.ts';
import { conditionSchema } from '../batch_exports/schema.ts';
import { intervalSchema, intervalStatuses } from '../intervals/schema.ts';
import { listTime } from '../paging.ts';
import { runSchema } from '../runs/schema.ts';
import { fieldChangeSchema, limitParameter, pathId, responseTimestampSchema } from '../schemas.ts';

/** The letters of interval statuses in `cells.statuses`; `missing` is what nothing has exported. */
export const intervalLetters = {
  exported: 'e',
  running: 'r',
  held: 'h',
  unsettled: 'u',
  failed: 'f',
  gap: 'g',
  due: 'd',
  paused: 'p',
  excluded: 'x',
  expired: 'o',
  missing: 'm',
} as const;

/** An export on the page that lists all. */
const overviewItemSchema = z.object({
  id: z.string(),
  name: z.string(),
  model: z.enum(models),
  interval: z.string(),
  destination: z.string().describe('Type and bucket.'),
  paused: z.boolean(),
  condition: conditionSchema,
  behind_intervals: z.number().int().nullable().describe('Null if the schedule cannot be read.'),
  fresh_until: responseTimestampSchema.nullable().describe('The end of the newest exported interval.'),
  next_run_at: responseTimestampSchema
    .nullable()
    .describe('The end of the current interval; null if paused.'),
  cells: z
    .object({
      start: responseTimestampSchema.nullable(),
      statuses: z.string().describe('A letter for each interval, oldest first.'),
      lengths: z
        .array(z.tuple([z.number(), z.number().int()]))
        .describe('Seconds and number of consecutive intervals of that length.'),
    })
    .describe('The newest intervals; those of a hole are missing.'),
  rows_by_hour: z
    .array(z.number().int())
    .describe('Rows of the intervals that ended in each of the last 24 hours.'),
  bytes_by_hour: z.array(z.number().int()),
});
export type OverviewItem = z.infer<typeof overviewItemSchema>;

/** Which exports the page shows. */
export const overviewQuery = z.object({
  limit: limitParameter,
  search: z.string().max(200).default('').describe('A part of the name, the destination or the id.'),
});
export type OverviewQuery = z.infer<typeof overviewQuery>;

export const overviewSchema = z.object({
  now: responseTimestampSchema,
  count: z.number().int().describe('All exports of the project.'),
  needing_attention: z.number().int().describe('Those of them that need attention.'),
  found: z.number().int().describe('Those that match the search.'),
  exports: z.array(overviewItemSchema).describe('The first that match; those that need attention first.'),
});
export type Overview = z.infer<typeof overviewSchema>;

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

/** What a range of the coverage is. `paused` and `missing` ranges have no run; `owed` ones have one that waits or is active. */
export const coverageKinds = ['exported', 'held', 'failed', 'owed', 'missing', 'paused', 'excluded'] as const;
export type CoverageKind = (typeof coverageKinds)[number];

const coverageSegment = z.object({
  start: responseTimestampSchema,
  end: responseTimestampSchema,
  kind: z.enum(coverageKinds),
  intervals: z.number().int(),
});
export type CoverageSegment = z.infer<typeof coverageSegment>;

/** What is exported of the time of an export, and its schedule. */
export const coverageSchema = z.object({
  now: responseTimestampSchema,
  segments: z
    .array(coverageSegment)
    .describe(
      'Adjacent ranges up to the newest ended interval, oldest first, each of another kind than the next.',
    ),
  is_complete: z.boolean().describe('False if older ranges were left out.'),
  newest_interval: z
    .object({ start: responseTimestampSchema, end: responseTimestampSchema })
    .describe('The newest interval that has ended.'),
  next_run_at: responseTimestampSchema
    .nullable()
    .describe('The end of the current interval; null if paused.'),
  run_seconds: z
    .number()
    .nullable()
    .describe('How long a run of the export takes; null before the first one.'),
  concurrent_runs: z.number().int().describe('Runs of a backfill that are active at once.'),
  temporal_ui: z.string().nullable().describe('Link to the workflows of the export in the Temporal UI.'),
});
export type CoverageResponse = z.infer<typeof coverageSchema>;

/** When the source inserted the first row of an export's model and project. */
export const firstRowSchema = z.object({
  at: responseTimestampSchema.nullable().describe('Null if there is no row, or if it is not known.'),
  detail: z.string().nullable().describe('Why it is not known.'),
});
export type FirstRowResponse = z.infer<typeof firstRowSchema>;

/** Exports with the same bucket whose condition has the same cause. */
export const sameTroubleSchema = z.object({
  exports: z.array(z.object({ id: z.string(), name: z.string(), condition: conditionSchema })),
});
export type SameTroubleResponse = z.infer<typeof sameTroubleSchema>;

const sortKey = z.object({ inserted_at: z.string(), id: z.string() }).nullable();

/** A file of an interval's current manifest. */
const intervalFile = z
  .object({
    key: z.string(),
    range: z.number().int(),
    rows: z.number().int(),
    bytes: z.number().int(),
    crc32: z.string(),
    first: sortKey,
    last: sortKey,
    rejected: z.number().int(),
    expires_at: responseTimestampSchema.nullable(),
  })
  .meta({ id: 'BatchExportIntervalFile' });
export type IntervalFile = z.infer<typeof intervalFile>;

/** A file of an earlier generation that the manifest still names. */
const earlierFile = z.object({
  key: z.string(),
  rows: z.number().int(),
  bytes: z.number().int(),
  crc32: z.string(),
  generation: z.number().int(),
});

/** A part of an interval, by insertion time, in which two sets of rows can differ. */
const bucketDifference = z.object({
  start: responseTimestampSchema,
  end: responseTimestampSchema,
  before: z.number().int().describe('Rows of the generation before.'),
  after: z.number().int().describe('Rows of this one. Equal numbers are of different rows.'),
});

/** One export of an interval, and what differs from the one before. */
const generation = z.object({
  generation: z.number().int(),
  is_current: z.boolean(),
  run: runSchema,
  config_version: z.number().int(),
  model: z.string(),
  files: z.number().int(),
  rows: z.number().int(),
  rejected_rows: z.number().int(),
  bytes: z.number().int(),
  settled: z.boolean(),
  difference: z
    .object({
      rows: z.number().int().describe('Rows more than before.'),
      bytes: z.number().int(),
      files: z.number().int(),
      buckets: z
        .array(bucketDifference)
        .nullable()
        .describe('Where rows differ; null if the generations are of different models.'),
      fields: z.array(fieldChangeSchema).describe('Fields of the destination that differ.'),
    })
    .nullable()
    .describe('Null for the first generation.'),
});
export type Generation = z.infer<typeof generation>;

const bucketPair = z.object({
  start: responseTimestampSchema,
  end: responseTimestampSchema,
  source_rows: z.number().int(),
  bucket_rows: z.number().int(),
  is_equal: z.boolean(),
});

const total = z.object({ hash: z.string(), rows: z.number().int(), sum: z.string() });

/** The rows of the source after the export against those of the files, by insertion time. */
const fingerprints = z.object({
  source: total,
  bucket: total.describe('The rows of the files, and the rejected ones.'),
  is_equal: z.boolean(),
  buckets: z.array(bucketPair),
});

/** The newest of what has compared the files of an interval with the source. */
const newestCheck = z.object({
  kind: z
    .enum(['export', 'held_run', 'comparison', 'verification'])
    .describe(
      '`export`: the fingerprints right after the export. `held_run`: a run that would have removed rows.',
    ),
  at: responseTimestampSchema,
  is_equal: z.boolean(),
  summary: z.string().describe('What it found, in one sentence.'),
});
export type NewestCheck = z.infer<typeof newestCheck>;

/** Everything that exportd knows of one interval. */
export const intervalDetailSchema = z.object({
  interval: intervalSchema,
  previous: responseTimestampSchema.nullable().describe('The start of the interval before, if it had a run.'),
  next: responseTimestampSchema.nullable(),
  next_comparison_at: responseTimestampSchema
    .nullable()
    .describe('When the files are compared with the source next; null if they are not.'),
  runs: z.array(runSchema).describe('The 50 newest runs of the interval, newest first.'),
  generations: z.array(generation).describe('The 20 newest generations, newest first.'),
  files: z.array(intervalFile).describe('The first 500 files of the current manifest, in key order.'),
  rejected_file: z.object({ key: z.string(), rows: z.number().int(), bytes: z.number().int() }).nullable(),
  kept: z.array(earlierFile),
  earlier: z.array(earlierFile),
  fingerprints: fingerprints
    .nullable()
    .describe('Null without a manifest, or if persons decide which rows are selected.'),
  newest_check: newestCheck
    .nullable()
    .describe('Null without a manifest, and while nothing has compared it.'),
  manifest: z
    .object({
      bucket: z.string(),
      endpoint: z.string().nullable(),
      key: z.string(),
      body: z.record(z.string(), z.unknown()).describe('As the journal recorded it, with the files above.'),
    })
    .nullable(),
});
export type IntervalDetailResponse = z.infer<typeof intervalDetailSchema>;

/** The path of an interval: intervals of an export do not overlap, so that the start identifies one. */
export const intervalPath = z.object({
  project_id: z.string(),
  batch_export_id: pathId,
  start: z.iso.datetime({ offset: true }),
});

/** The id of a row, to find its file. */
export const rowLocationQuery = z.strictObject({
  uuid: z.guid('Must be the uuid of an event.').toLowerCase(),
});

/** Which file of the current manifest holds a row. */
export const rowLocationSchema = z.object({
  location: z.enum(['file', 'not_in_source', 'not_in_manifest', 'not_exported', 'unsupported']),
  inserted_at: z.string().nullable().describe('When the source received the row, with microseconds.'),
  file: intervalFile.nullable(),
  detail: z.string(),
});
export type RowLocationResponse = z.infer<typeof rowLocationSchema>;

const count = z.number().int();

/** A verification of an interval: what `exportd verify` reports of it. */
export const verificationSchema = z
  .object({
    id: z.string(),
    deep: z.boolean().describe('Whether all values were compared, not only the presence of rows.'),
    status: z.enum(['pending', 'completed', 'failed']),
    error: z.string().nullable().describe('Why it failed.'),
    created_at: responseTimestampSchema,
    finished_at: responseTimestampSchema.nullable(),
    report: z
      .object({
        ok: z.boolean(),
        rows: count,
        files: count,
        bytes: count,
        missing: count,
        duplicate: count,
        unexpected: count,
        mismatched: count,
        findings: z
          .array(
            z.object({
              kind: z.string(),
              object: z.string().nullable(),
              count,
              detail: z.string(),
              rows: z.array(z.object({ id: z.string(), column: z.string().optional() })),
            }),
          )
          .describe('The first 50.'),
        notes: z.array(z.string()).describe('The first 50.'),
      })
      .nullable(),
  })
  .meta({ id: 'BatchExportVerification' });
export type VerificationResponse = z.infer<typeof verificationSchema>;

/** The newest verifications of an interval, newest first. */
export const verificationsSchema = z.object({ results: z.array(verificationSchema) });
export type VerificationsResponse = z.infer<typeof verificationsSchema>;

export const verificationBody = z.strictObject({
  deep: z.boolean().optional().describe('Compare all values, not only the presence of rows.'),
});

/** What an export would write for its newest ended interval. */
export const previewSchema = z
  .object({
    interval: z.object({ start: responseTimestampSchema, end: responseTimestampSchema }),
    manifest: z.string().describe('The name of the manifest, such as s3://bucket/key.'),
    file: z.string().describe('The name of the first file.'),
    columns: z.array(z.object({ name: z.string(), type: z.string() })),
    rows: z.array(z.array(z.unknown())).describe('The first rows, as JSON lines would have them.'),
    rows_since: responseTimestampSchema.describe('Start of the sampled range.'),
  })
  .meta({ id: 'BatchExportPreview' });
export type PreviewResponse = z.infer<typeof previewSchema>;

/** How much an export would write, by the newest intervals. */
export const estimateSchema = z
  .object({
    start: responseTimestampSchema,
    end: responseTimestampSchema,
    intervals: z.number().int().describe('The intervals in the range that was counted.'),
    rows: z.number().int().nullable().describe('The rows of the range; null when counting took too long.'),
    rows_per_interval: z.number().nullable(),
    bytes_per_interval: z.number().nullable().describe('In the format and compression of the files.'),
    files_per_interval: z.number().nullable(),
    detail: z.string().nullable().describe('Why there is no estimate.'),
  })
  .meta({ id: 'BatchExportEstimate' });
export type EstimateResponse = z.infer<typeof estimateSchema>;

/** Whether exports of a model can read the source, and how to fix what they cannot. */
export const sourceReportSchema = z.object({
  ok: z.boolean(),
  relations: z.array(
    z.object({
      setting: z.string().describe('The setting that names the relation.'),
      relation: z.string(),
      kind: z.string().nullable().describe('Such as table or view; null if it does not exist.'),
    }),
  ),
  findings: z.array(
    z.object({
      level: z.enum(['error', 'warning']),
      subject: z.string(),
      column: z.string().nullable(),
      message: z.string(),
      sql: z.string().nullable().describe('Statements that fix it.'),
    }),
  ),
  views: z.array(
    z.object({ setting: z.string(), name: z.string(), sql: z.string(), to_choose: z.array(z.string()) }),
  ),
  tables: z
    .array(z.string())
    .describe('Relations that may have the events, while the configured one does not exist.'),
});
export type SourceReportResponse = z.infer<typeof sourceReportSchema>;

export const sourceCheckQuery = z.object({
  model: z.enum(models).default('events'),
  table: z.string().optional().describe('One of `tables`: the view is drafted over it.'),
});

/** Longer than a name of PostgreSQL with its schema, both in quotes. */
const maxName = 300;

export const sourceMapBody = z
  .strictObject({
    table: z
      .string()
      .max(maxName)
      .optional()
      .describe('One of `tables`; without it, only those are returned.'),
    columns: z
      .record(z.string().max(maxName), z.string().max(maxName))
      .optional()
      .describe('Columns of the table that are given to columns of events, by the names of those.'),
  })
  .meta({ id: 'SourceMap' });

/** A table whose columns are given to columns of events. */
export const sourceMappingSchema = z.object({
  tables: z
    .array(z.string())
    .describe('Tables of the source with a column of a time, those with most rows first; at most 50.'),
  mapping: z
    .object({
      columns: z.array(z.object({ name: z.string(), type: z.string() })).describe('Those of the table.'),
      roles: z.array(
        z.object({
          name: z.string(),
          type: z.string(),
          why: z.string().describe('What exports do with it.'),
          sql: z.string().describe('The expression of the view.'),
          comment: z.string().nullable().describe('What a person has to know about it.'),
        }),
      ),
      view: z.string().describe('The name of the view.'),
      setting: z.string().describe('The setting that names what exportd reads.'),
      is_read: z
        .boolean()
        .describe('Whether exportd reads a view of this name, so that no setting has to change.'),
      to_choose: z.array(z.string()).describe('Columns of events for which a column has to be chosen.'),
      script: z.string().describe('Creates the view, its index and its grants.'),
      rows: z
        .array(z.record(z.string(), z.string().nullable()))
        .nullable()
        .describe(
          'The first 20 rows of the view as text, by its columns. Null while columns have to be chosen, and for keys without `source:read`.',
        ),
    })
    .nullable(),
});
export type SourceMappingResponse = z.infer<typeof sourceMappingSchema>;

const namedFields = z.object({
  name: z.string(),
  fields: z.array(
    z.object({ name: z.string(), type: z.string().describe('The ClickHouse name of the type.') }),
  ),
});

/** What an editor of queries completes. */
export const vocabularySchema = z.object({
  tables: z.array(namedFields),
  functions: z.array(
    z.object({ name: z.string(), kind: z.string(), signature: z.string(), description: z.string() }),
  ),
  keywords: z.array(z.string()),
});
export type VocabularyResponse = z.infer<typeof vocabularySchema>;

/** The names of events and properties in the newest rows, the most frequent first. */
export const projectNamesSchema = z.object({
  events: z.array(z.string()),
  event_properties: z.array(z.string()),
  person_properties: z.array(z.string()),
});
export type ProjectNamesResponse = z.infer<typeof projectNamesSchema>;

/** The text of a query that is checked and not run. */
export const checkQueryBody = z.strictObject({ query: z.string().max(262_144) });

/** What is wrong with a query, and where. Offsets are UTF-16 code units, as in JavaScript. */
export const checkedQuerySchema = z.object({
  error: z
    .object({
      detail: z.string(),
      line: z.number().int(),
      column: z.number().int(),
      offset: z.number().int(),
      length: z.number().int().describe('0 at the end of the text.'),
    })
    .nullable(),
});
export type CheckedQueryResponse = z.infer<typeof checkedQuerySchema>;

import * as z from 'zod';
import { timestampSchema } from '../../journal/commands.ts';
import { runSchema } from '../runs/schema.ts';
import { fieldChangeSchema, pathId, responseTimestampSchema } from '../schemas.ts';
import { intervalSchema } from './schema.ts';

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
    .string()
    .describe(
      '`export`: the fingerprints right after the export. `held_run`: a run that would have removed rows. `comparison`: a later one by the maintenance. `decision`: a person has kept what differs. Otherwise what a person has asked for.',
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
  start: timestampSchema,
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

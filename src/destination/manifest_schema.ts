import { z } from 'zod';
import { models } from '../domain/batch_export.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';

const count = z.int().min(0);
const time = z.string().describe('ISO 8601, UTC');
const crc32 = z.string().regex(/^[0-9a-f]{8}$/);

const sortKey = z
  .object({
    inserted_at: z.string().describe('ISO 8601 in UTC with microseconds'),
    id: z.string().describe('uuid of an event, distinct_id of a person'),
  })
  .nullable();

const fingerprint: z.ZodType<Fingerprint> = z
  .object({
    hash: z
      .enum(['uuid_hash_extended/0', 'hashtextextended/0'])
      .describe("PostgreSQL's function and its seed: of the uuid of an event, the distinct_id of a person"),
    width_ms: z.int().min(1).describe('Length of a bucket; they start at data_interval_start'),
    buckets: z
      .array(
        z.object({
          index: count,
          rows: count,
          sum: z.string().describe('Sum of the hashes modulo 2^64, without a sign'),
        }),
      )
      .describe('By insertion time; only buckets that have rows'),
    all_events: z
      .literal(true)
      .optional()
      .describe('Set if these are all events of the project, because persons decide which are selected'),
  })
  .describe('Which rows these are, and nothing about their contents');

const earlierFile = z.object({
  key: z.string(),
  rows: count,
  bytes: count,
  crc32,
  generation: z.int().min(1).describe('The generation that wrote the file'),
});

/** The schema of a manifest. Fields may be added; readers should ignore unknown fields. */
export const manifestSchema = z
  .object({
    version: z.literal(1),
    batch_export_id: z.string(),
    run_id: z.string().describe('The run that wrote the files'),
    generation: z
      .int()
      .min(1)
      .describe('Increases with every export of the interval; the highest generation wins'),
    config_version: z.int().describe('Config version of the run'),
    model: z.enum(models),
    data_interval_start: time.describe('Start of the interval [start, end) of insertion time; ISO 8601, UTC'),
    data_interval_end: time,
    settled: z
      .boolean()
      .describe('False when a transaction that may add rows was still open when reading started'),
    columns: z
      .array(z.object({ name: z.string(), type: z.string() }))
      .describe(
        'In file order; types are uuid, text, timestamp, date, json, bigint, integer, double, boolean',
      ),
    rows: count.describe('Total of all files'),
    bytes: count.describe('Total of all files'),
    source_rows: count.describe('Rows of the interval in the source right after reading'),
    fingerprint: fingerprint.describe('The rows of the files, and the rejected ones'),
    rejected: count.describe(
      'Number of rows that the format cannot represent; they are stored in rejected_file',
    ),
    rejected_file: z
      .object({ key: z.string(), rows: count, fingerprint, bytes: count, crc32 })
      .nullable()
      .default(null)
      .describe('JSON lines with the fields id, column, reason and row'),
    encoder: z.string().describe('Name and version of the encoder of the files'),
    files: z
      .array(
        z.object({
          key: z
            .string()
            .describe('Key in the bucket of the manifest; the extension tells format and compression'),
          rows: count,
          fingerprint,
          bytes: count,
          crc32: crc32.describe('CRC-32 of the object, eight hexadecimal digits'),
          first: sortKey.describe('Sort key of the first row; rows are sorted between first and last'),
          last: sortKey,
        }),
      )
      .describe('In the order of their sort keys; every row of the interval is in exactly one file, once'),
    kept: z
      .array(earlierFile)
      .default([])
      .describe(
        'Files of earlier generations that stay because their rows could not be compared with these files; readers do not need them',
      ),
    earlier: z
      .array(earlierFile)
      .default([])
      .describe(
        'Files of earlier generations of persons, which may have the only state of a person: read the newest state of each distinct_id over files and earlier',
      ),
    created_at: time,
  })
  .describe('The files that contain the rows of one interval of a batch export');

/** The schema as JSON Schema, published for readers as `manifest.schema.json`. */
export const manifestJsonSchema = () => z.toJSONSchema(manifestSchema, { io: 'input' });

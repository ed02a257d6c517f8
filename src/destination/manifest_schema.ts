import { z } from 'zod';
import { models } from '../domain/batch_export.ts';

const count = z.int().min(0);
const time = z.string().describe('ISO 8601, UTC');
const crc32 = z.string().regex(/^[0-9a-f]{8}$/);

const sortKey = z
  .object({
    inserted_at: z.string().describe('ISO 8601 in UTC with microseconds'),
    id: z.string().describe('uuid of an event, distinct_id of a person'),
  })
  .nullable();

/** What a manifest holds. Members may be added; readers are to ignore those they do not know. */
export const manifestSchema = z
  .object({
    version: z.literal(1),
    batch_export_id: z.string(),
    run_id: z.string().describe('The run that wrote the files'),
    generation: z
      .int()
      .min(1)
      .describe('Grows with every export of the interval; where there are several, the highest counts'),
    config_version: z.int().describe("Version of the export's config that the run was opened with"),
    model: z.enum(models),
    data_interval_start: time.describe('The interval [start, end) of insertion time; ISO 8601, UTC'),
    data_interval_end: time,
    settled: z
      .boolean()
      .describe('False when a transaction that could still add rows was open when the read began'),
    columns: z
      .array(z.object({ name: z.string(), type: z.string() }))
      .describe(
        'In the order of the files; types are uuid, text, timestamp, date, json, bigint, integer, double, boolean',
      ),
    rows: count.describe('Of all files together'),
    bytes: count.describe('Of all files together'),
    source_rows: count.describe('Rows of the interval in the source right after the last one was read'),
    rejected: count.describe('Rows that the format cannot hold; rejected_file has them'),
    rejected_file: z
      .object({ key: z.string(), rows: count, bytes: count, crc32 })
      .nullable()
      .default(null)
      .describe('JSON lines with the members id, column, reason and row'),
    encoder: z.string().describe('Name and version of what made the files'),
    files: z
      .array(
        z.object({
          key: z.string().describe('In the bucket of the manifest; its ending says format and compression'),
          rows: count,
          bytes: count,
          crc32: crc32.describe('CRC-32 of the object, eight hexadecimal digits'),
          first: sortKey.describe('Rows of the file lie between these two keys, in their order'),
          last: sortKey,
        }),
      )
      .describe('In the order of their keys; every row of the interval is in exactly one of them, once'),
    created_at: time,
  })
  .describe('The files that hold the rows of one interval of a batch export');

/** The same as JSON Schema; `manifest.schema.json` holds it for readers. */
export const manifestJsonSchema = () => z.toJSONSchema(manifestSchema, { io: 'input' });

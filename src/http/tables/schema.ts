import * as z from 'zod';
import { pathId, responseTimestampSchema } from '../schemas.ts';

export const tablePath = z.object({ project_id: z.string(), batch_export_id: pathId });

const count = z.number().int();

/** The table of an export in a response. */
export const tableSchema = z
  .object({
    location: z.string().describe('The folder of the table, such as `s3://bucket/events`.'),
    version: count,
    files: count,
    rows: count.nullable().describe('Null if a file of another writer does not say how many it has.'),
    bytes: count,
    columns: z.array(z.object({ name: z.string(), type: z.string() })),
    partition_columns: z.array(z.string()),
    protocol: z.object({ reader: count, writer: count }),
    checkpoint: count.nullable().describe('The version of the newest checkpoint; null without one.'),
  })
  .meta({ id: 'BatchExportTable' });
export type TableResponse = z.infer<typeof tableSchema>;

const versionSchema = z
  .object({
    version: count,
    committed_at: responseTimestampSchema,
    writer: z
      .enum(['run', 'repair', 'other', 'unknown'])
      .describe('`other`: another program. `unknown`: its object cannot be read.'),
    description: z
      .string()
      .nullable()
      .describe('What another program says of itself, or why it cannot be read.'),
    run_id: z.string().nullable(),
    generation: count.nullable(),
    data_interval_start: z.string().nullable(),
    data_interval_end: z.string().nullable(),
    files_added: count,
    files_removed: count,
  })
  .meta({ id: 'BatchExportTableVersion' });

/** The page after this one starts before `next_before`. */
export const tableHistorySchema = z.object({
  next_before: count
    .nullable()
    .describe('`before` of the next page; null if these are the oldest versions that the log has.'),
  results: z.array(versionSchema),
});
export type TableHistoryResponse = z.infer<typeof tableHistorySchema>;

export const tableHistoryQuery = z.strictObject({
  limit: z.coerce
    .number('Must be a whole number from 1 to 200.')
    .int()
    .min(1, 'Must be at least 1.')
    .max(200, 'Must be at most 200.')
    .default(50),
  before: z.coerce
    .number('Must be a whole number.')
    .int()
    .min(0, 'Must be at least 0.')
    .optional()
    .describe('Only versions before this one.'),
});

export const tableCheckSchema = z
  .object({
    ok: z.boolean(),
    version: count.nullable().describe('Null if there is no table, or it cannot be read.'),
    manifests: count,
    files: count.describe('Files of the table.'),
    left_intervals: count.describe(
      'Intervals that were not compared: a run of them is active, or their files are not those of a table.',
    ),
    findings: z.array(
      z.object({
        kind: z.string(),
        object: z.string().nullable(),
        count,
        detail: z.string(),
        data_interval_start: z.string().nullable(),
        data_interval_end: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'BatchExportTableCheck' });
export type TableCheckResponse = z.infer<typeof tableCheckSchema>;

export const tableRepairSchema = z
  .object({
    version: count.nullable().describe('The version that was written; null if nothing differed.'),
    files_added: count,
    files_removed: count,
  })
  .meta({ id: 'BatchExportTableRepair' });
export type TableRepairResponse = z.infer<typeof tableRepairSchema>;

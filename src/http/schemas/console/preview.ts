import { z } from 'zod';
import { models } from '../../../domain/batch_export.ts';
import { responseTimestampSchema } from '../common.ts';

/** What an export would write for its newest ended interval. */
export const previewSchema = z.object({
  interval: z.object({ start: responseTimestampSchema, end: responseTimestampSchema }),
  manifest: z.string().describe('The name of the manifest, such as s3://bucket/key.'),
  file: z.string().describe('The name of the first file.'),
  columns: z.array(z.object({ name: z.string(), type: z.string() })),
  rows: z.array(z.array(z.unknown())).describe('The first rows, as JSON lines would have them.'),
  rows_since: responseTimestampSchema.describe('Start of the range that the rows are the first of.'),
});
export type PreviewResponse = z.infer<typeof previewSchema>;

/** How much an export would write, by the newest intervals. */
export const estimateSchema = z.object({
  start: responseTimestampSchema,
  end: responseTimestampSchema,
  intervals: z.number().int().describe('The intervals in the range that was counted.'),
  rows: z.number().int().nullable().describe('The rows of the range; null when counting took too long.'),
  rows_per_interval: z.number().nullable(),
  bytes_per_interval: z.number().nullable().describe('In the format and compression of the files.'),
  files_per_interval: z.number().nullable(),
  detail: z.string().nullable().describe('Why there is no estimate.'),
});
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

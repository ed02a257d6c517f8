import * as z from 'zod';
import { responseTimestampSchema } from '../schemas.ts';

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

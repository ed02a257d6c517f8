import { z } from 'zod';
import { listTime } from '../list_times.ts';

/** Which failed runs of the project are retried. */
export const retryFailedBody = z.strictObject({
  since: listTime
    .nullish()
    .describe('Only runs that failed at or after this time, such as -2h. By default all failed runs.'),
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

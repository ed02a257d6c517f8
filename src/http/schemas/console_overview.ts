import { z } from 'zod';
import { models } from '../../domain/batch_export.ts';
import { limitParameter, responseTimestampSchema } from './common.ts';

/** What an export's row says first. In the order in which exports need attention. */
export const exportConditions = [
  'failing',
  'gap',
  'held',
  'behind',
  'unsettled',
  'active',
  'paused',
] as const;
export type ExportCondition = (typeof exportConditions)[number];

/** The conditions of exports that need no attention. */
export const calmConditions: ReadonlySet<ExportCondition> = new Set(['active', 'paused']);

/** The letters of interval statuses in `cells.statuses`. */
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
} as const;

/** An export on the page that lists all. */
export const overviewItemSchema = z.object({
  id: z.string(),
  name: z.string(),
  model: z.enum(models),
  interval: z.string(),
  destination: z.string().describe('Type and bucket.'),
  paused: z.boolean(),
  condition: z.enum(exportConditions),
  problem: z.string().nullable().describe('The latest error of a failing or held export.'),
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
    .describe('The newest intervals, without a hole between them.'),
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

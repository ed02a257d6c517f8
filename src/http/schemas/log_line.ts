import { z } from 'zod';
import { logLevels } from '../../journal/journal.ts';
import { listTime } from '../list_times.ts';
import { limitParameter, offsetParameter, repeatable, responseTimestampSchema } from './common.ts';

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

export const logsQuery = z.strictObject({
  limit: limitParameter,
  offset: offsetParameter,
  level: repeatable.describe(`One or more of ${logLevels.join(', ')}, case-insensitive.`),
  after: listTime.optional().describe('Only lines after this time.'),
  before: listTime.optional().describe('Only lines before this time.'),
  search: z.string().optional().describe('Text that the message contains, case-insensitive.'),
  run_id: z.guid('Must be the UUID of a run.').optional(),
});
export type LogsQuery = z.infer<typeof logsQuery>;

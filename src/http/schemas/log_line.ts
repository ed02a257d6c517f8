import { z } from 'zod';
import { logLevels } from '../../journal/log_lines.ts';
import { timestamp } from '../../journal/commands.ts';
import { limitParameter, offsetParameter, repeatable, responseTimestamp } from './common.ts';

/** A line of an export's log as it is answered. */
export const logLineSchema = z
  .object({
    timestamp: responseTimestamp,
    level: z.enum(logLevels),
    message: z.string(),
    instance_id: z.string().nullable().describe('The run that the line is about.'),
    log_source_id: z.string().describe('The batch export.'),
  })
  .meta({ id: 'LogEntry' });
export type LogLineResponse = z.infer<typeof logLineSchema>;

export const logsQuery = z.object({
  limit: limitParameter,
  offset: offsetParameter,
  level: repeatable.describe(`One or more of ${logLevels.join(', ')}, in any case.`),
  after: timestamp.optional().describe('Only lines after this time.'),
  before: timestamp.optional().describe('Only lines before this time.'),
  search: z.string().optional().describe('Text that the message holds, in any case.'),
  run_id: z.guid('Must be the id of a run.').optional(),
});
export type LogsQuery = z.infer<typeof logsQuery>;

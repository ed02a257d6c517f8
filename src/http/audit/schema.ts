import * as z from 'zod';
import { auditOutcomes } from '../../journal/audit.ts';
import {
  fieldChangeSchema,
  limitParameter,
  offsetParameter,
  repeatable,
  responseTimestampSchema,
} from '../schemas.ts';
import { listTime } from '../list_times.ts';

const auditUser = z.object({ id: z.number().int(), email: z.string() });
const auditKey = z.object({ id: z.string(), name: z.string(), prefix: z.string() });

/** An event of the audit trail in a response. */
export const auditEventSchema = z
  .object({
    id: z.string(),
    at: responseTimestampSchema,
    user: auditUser.nullable(),
    key: auditKey.nullable(),
    project: z.object({ id: z.number().int(), name: z.string() }).nullable(),
    address: z.string().nullable().describe('Null for the command line.'),
    client: z.string().nullable().describe('The user agent, or the user and host of a command.'),
    action: z.string().describe('Resource and verb, such as `batch_export.update`.'),
    object: z.string().nullable().describe('The path of the object below the project.'),
    object_name: z
      .string()
      .nullable()
      .describe('What the export, key, user or project is called now that the object is or is part of.'),
    outcome: z.enum(auditOutcomes),
    status: z.number().int().nullable().describe('The HTTP status; null for the command line.'),
    detail: z.string().nullable().describe('The code of the error.'),
    changes: z
      .array(fieldChangeSchema)
      .describe('The fields that were set to another value, such as those of an export.'),
  })
  .meta({ id: 'AuditEvent' });

export const auditQuery = z.strictObject({
  limit: limitParameter.unwrap().optional().describe('Default: 100; as CSV all.'),
  offset: offsetParameter.describe('Not as CSV.'),
  format: z
    .enum(['json', 'csv'])
    .optional()
    .describe('`csv`: all events of the filters as a file, also by `Accept: text/csv`.'),
  user: z.coerce.number().int().min(1).max(2_147_483_647).optional().describe('Id of a user.'),
  key: z.guid('Must be the UUID of a key.').optional().describe('Id of a key.'),
  action: repeatable.describe('One or more actions, repeated or comma-separated.'),
  exclude_action: repeatable.describe('None of these actions, such as `session.sign_in`.'),
  object: z
    .string()
    .max(300)
    .optional()
    .describe('Path of an object, such as `batch_exports/<id>`: what was done with it and its parts.'),
  outcome: repeatable.describe(`One or more of ${auditOutcomes.join(', ')}, repeated or comma-separated.`),
  since: listTime.optional().describe('Only events from this time on.'),
  until: listTime.optional().describe('Only events before this time.'),
});

/** What the filters of the console offer. */
export const auditNames = z.object({
  users: z.array(auditUser),
  keys: z.array(auditKey),
  actions: z.array(z.string()),
  outcomes: z.array(z.enum(auditOutcomes)),
});

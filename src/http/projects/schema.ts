import { z } from 'zod';
import { weekStartDays } from '../accounts.ts';

/** A project in a response. */
export const projectSchema = z
  .object({
    id: z.number().int(),
    name: z.string(),
    timezone: z.string(),
    week_start_day: z.enum(weekStartDays),
    external_id: z
      .string()
      .describe('The `sts:ExternalId` that roles of the project demand, for destinations with `role_arn`.'),
  })
  .meta({ id: 'Project' });

/** A user who owns an active key of a project. */
export const projectUserSchema = z
  .object({
    id: z.number().int(),
    email: z.string(),
    first_name: z.string(),
    last_name: z.string(),
    active_keys: z.number().int().describe('Keys of the project that the user owns.'),
  })
  .meta({ id: 'ProjectUser' });

/** Who is signed in to the console, and what the key may do. */
const sessionSchema = z.object({
  user: z.object({ id: z.number().int(), first_name: z.string(), last_name: z.string(), email: z.string() }),
  actor: z
    .object({ id: z.number().int(), email: z.string() })
    .describe('Whom the audit trail names: the user whom a trusted proxy names, else `user`.'),
  project: projectSchema,
  projects: z.array(projectSchema).describe('All projects of the key.'),
  scopes: z.array(z.string()),
  key: z.object({ id: z.string(), name: z.string(), prefix: z.string() }),
  version: z.string().describe('The version of exportd.'),
  temporal_ui: z.string().nullable().describe('Base URL of the Temporal UI.'),
});
export type Session = z.infer<typeof sessionSchema>;

/** Null when nobody is signed in: not an error, so that the browser logs none. */
export const sessionResponse = z.object({ session: sessionSchema.nullable() });

/** The number of sessions that signing out everywhere has ended. */
export const endedSessions = z.object({ ended: z.number().int() });

export const signInBody = z.strictObject({ key: z.string().trim().min(1, 'Enter an API key.').max(1_000) });

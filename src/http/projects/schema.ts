import * as z from 'zod';
import { isTimeZone } from '../../domain/intervals.ts';
import { maxAddressLength } from '../plugins/authentication.ts';
import { lineText, responseTimestampSchema, userSchema } from '../schemas.ts';
import { weekStartDays } from './week_start_days.ts';
import { projectName } from '../accounts/projects.ts';
import { addressPattern } from '../accounts/users.ts';

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

/** A user in responses to who administers the installation. */
export const installationUserSchema = userSchema
  .extend({
    disabled_at: responseTimestampSchema.nullable().describe('Null if the user is not disabled.'),
    active_keys: z.number().int().describe('Active keys that the user owns.'),
    active_keys_of_others: z
      .number()
      .int()
      .describe('Active keys that the user created and others own. They stay when the user is disabled.'),
  })
  .meta({ id: 'InstallationUser' });

/** The id of a user or a project in a path. */
export const numberPath = z.object({
  id: z
    .string()
    .regex(/^[1-9]\d{0,9}$/)
    .refine((text) => Number(text) <= 2_147_483_647),
});

/** What was done to a user. */
export const disabledUserSchema = installationUserSchema
  .extend({ revoked_keys: z.number().int().describe('Keys that ended now.') })
  .meta({ id: 'DisabledUser' });

const maxNameLength = 200;

export const createUserBody = z
  .strictObject({
    email: z
      .string()
      .max(maxAddressLength)
      .regex(addressPattern, 'Must be an e-mail address.')
      .describe('No other user has it, in any case of its letters.'),
    first_name: lineText(maxNameLength).default(''),
    last_name: lineText(maxNameLength).default(''),
    role_at_organization: lineText(maxNameLength)
      .default('')
      .describe('A job title. It grants nothing: keys do.'),
  })
  .meta({ id: 'UserCreate' });

export const createProjectBody = z
  .strictObject({
    name: projectName,
    id: z
      .number()
      .int()
      .min(1)
      .max(2_147_483_647)
      .optional()
      .describe('The `team_id` of its rows in the source. Default: the next free one.'),
    timezone: z
      .string()
      .refine(isTimeZone, 'Unknown time zone. Use an IANA name such as Europe/Berlin.')
      .default('UTC'),
    week_start_day: z.enum(weekStartDays).default('sunday'),
  })
  .meta({ id: 'ProjectCreate' });

export const renameProjectBody = z.strictObject({ name: projectName }).meta({ id: 'ProjectRename' });

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

/** Null without a session: not an error, so that the browser logs none. */
export const sessionResponse = z.object({ session: sessionSchema.nullable() });

/** The number of sessions that signing out everywhere has ended. */
export const endedSessions = z.object({ ended: z.number().int() });

export const signInBody = z.strictObject({ key: z.string().trim().min(1, 'Enter an API key.').max(1_000) });

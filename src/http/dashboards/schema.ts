import { z } from 'zod';
import { nameText, readOnly, responseTimestampSchema, userSchema } from '../schemas.ts';
import {
  accessLevels,
  privilegeLevelLabels,
  privilegeLevels,
  restrictionLevelLabels,
  restrictionLevels,
} from './access_levels.ts';

const maxId = 2_147_483_647;

const toMarkdownList = (labels: Readonly<Record<number, string>>): string =>
  Object.entries(labels)
    .map(([value, label]) => `* \`${value}\` - ${label}`)
    .join('\n');

const restrictionLevel = z.literal(restrictionLevels).meta({
  id: 'DashboardRestrictionLevel',
  type: 'integer',
  description: toMarkdownList(restrictionLevelLabels),
  'x-enum-labels': restrictionLevelLabels,
});

const privilegeLevel = z.literal(privilegeLevels).meta({
  id: 'DashboardPrivilegeLevel',
  type: 'integer',
  description: toMarkdownList(privilegeLevelLabels),
  'x-enum-labels': privilegeLevelLabels,
});

const accessLevel = z.enum(accessLevels).meta({ id: 'DashboardAccessLevel' });

/** A dashboard in a list. */
export const dashboardSchema = z
  .object({
    id: z.number().int(),
    name: z.string(),
    description: z.string(),
    pinned: z.boolean(),
    created_at: responseTimestampSchema,
    created_by: userSchema.nullable().describe('Null when the user no longer exists.'),
    is_shared: z.boolean(),
    deleted: z.boolean(),
    creation_mode: z.enum(['default', 'template', 'duplicate']),
    tags: z.array(z.string()),
    restriction_level: restrictionLevel,
    effective_restriction_level: restrictionLevel.describe(
      "The stricter of the dashboard's level and its project's level.",
    ),
    effective_privilege_level: privilegeLevel.describe(
      '37 when the user of the key may edit the dashboard, else 21.',
    ),
    user_access_level: accessLevel.describe(
      'The access level of the user of the key. The creator is a manager. Other users have their level in ' +
        '`access_controls`, else `default_access_level`, which is at most `viewer` when only collaborators may edit.',
    ),
  })
  .meta({ id: 'Dashboard' });
export type DashboardResponse = z.infer<typeof dashboardSchema>;

/** A single dashboard, with its access settings. */
export const dashboardDetailSchema = dashboardSchema
  .extend({
    default_access_level: accessLevel.describe(
      'The access level of users that `access_controls` does not list.',
    ),
    access_controls: z
      .array(z.object({ user: z.string().describe('UUID of the user.'), access_level: accessLevel }))
      .describe('The collaborators, without the creator.'),
  })
  .meta({ id: 'DashboardDetail' });
export type DashboardDetailResponse = z.infer<typeof dashboardDetailSchema>;

const name = nameText(400);

const tag = nameText(255, 'A tag may not be blank.');

const invalidUserMessage = 'Must be the id or UUID of a user.';

const accessControl = z.strictObject({
  user: z
    .union(
      [
        z.int(invalidUserMessage).min(1, invalidUserMessage).max(maxId, invalidUserMessage),
        z.guid(invalidUserMessage),
      ],
      invalidUserMessage,
    )
    .describe('The id or UUID of a user.'),
  access_level: accessLevel,
});
export type AccessControlBody = z.infer<typeof accessControl>;

const writable = {
  description: z.string().max(10_000, 'Must have at most 10,000 characters.').nullish(),
  pinned: z.boolean().nullish(),
  tags: z.array(tag).max(100, 'Must have at most 100 tags.').nullish(),
  restriction_level: restrictionLevel.nullish(),
  default_access_level: accessLevel.nullish(),
  access_controls: z.array(accessControl).max(1_000, 'Must have at most 1,000 collaborators.').nullish(),
};

const readOnlyFields = {
  id: readOnly,
  created_at: readOnly,
  created_by: readOnly,
  is_shared: readOnly,
  creation_mode: readOnly,
  effective_restriction_level: readOnly,
  effective_privilege_level: readOnly,
  user_access_level: readOnly,
};

export const createDashboardBody = z
  .strictObject({ name, ...writable, ...readOnlyFields, deleted: readOnly })
  .meta({ id: 'DashboardCreate' });
export type CreateDashboardBody = z.infer<typeof createDashboardBody>;

/** The body of an update. An omitted field keeps its value; null resets it to its default. */
export const updateDashboardBody = z
  .strictObject({ name: name.optional(), ...writable, ...readOnlyFields, deleted: z.boolean().optional() })
  .meta({ id: 'DashboardUpdate' });
export type UpdateDashboardBody = z.infer<typeof updateDashboardBody>;

/** An id in a path. Other text than a positive decimal integer is 404. */
const dashboardId = z
  .string()
  .regex(/^[1-9]\d{0,9}$/)
  .transform(Number)
  .refine((id) => id <= maxId)
  .meta({ type: 'integer' });

export const dashboardPath = z.object({ project_id: z.string(), id: dashboardId });

import * as z from 'zod';
import { responseTimestampSchema, userSchema } from '../schemas.ts';
import { accessLevels, privilegeLevels, restrictionLevels } from './access_levels.ts';

const restrictionLevelLabels = {
  21: 'Everyone in the project can edit',
  37: 'Only those invited to this dashboard can edit',
};

const privilegeLevelLabels = { 21: 'Can view dashboard', 37: 'Can edit dashboard' };

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
      'The access level of the user of the key. The creator is a manager. Other users have their level as ' +
        'collaborators, else the default of the dashboard, which is at most `viewer` when only collaborators may edit.',
    ),
  })
  .meta({ id: 'Dashboard' });
export type DashboardResponse = z.infer<typeof dashboardSchema>;

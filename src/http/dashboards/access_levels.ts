import { ApiError } from '../api_error.ts';

/** What a user may do with a dashboard. Each level includes the levels before it. */
export const accessLevels = ['none', 'viewer', 'editor', 'manager'] as const;
export type AccessLevel = (typeof accessLevels)[number];

/** Who may edit a dashboard; higher is stricter. */
export const restrictionLevels = [21, 37] as const;
export type RestrictionLevel = (typeof restrictionLevels)[number];

/** Labels of the restriction levels. */
export const restrictionLevelLabels: Readonly<Record<RestrictionLevel, string>> = {
  21: 'Everyone in the project can edit',
  37: 'Only those invited to this dashboard can edit',
};

/** What the calling user may do, comparable with restriction levels. */
export const privilegeLevels = [21, 37] as const;

/** Labels of the privilege levels. */
export const privilegeLevelLabels: Readonly<Record<(typeof privilegeLevels)[number], string>> = {
  21: 'Can view dashboard',
  37: 'Can edit dashboard',
};

/** The access settings of a new dashboard. */
export const defaultAccess: {
  readonly restriction_level: RestrictionLevel;
  readonly default_access_level: AccessLevel;
} = { restriction_level: 21, default_access_level: 'editor' };

interface DashboardAccess {
  readonly effective_restriction_level: RestrictionLevel;
  readonly user_access_level: AccessLevel;
}

const permissionDenied = (detail: string, attr: string | null): ApiError =>
  new ApiError(403, 'permission_denied', detail, { attr });

/** Requires an editor or manager. @throws ApiError 403 */
export function requireEditor({ effective_restriction_level, user_access_level }: DashboardAccess): void {
  if (user_access_level === 'editor' || user_access_level === 'manager') return;
  const restricted =
    effective_restriction_level === 37
      ? ' Only collaborators may edit this dashboard (restriction level 37).'
      : '';
  throw permissionDenied(
    `Your access level on this dashboard is '${user_access_level}'; editing it requires 'editor' or 'manager'.${restricted}`,
    null,
  );
}

/** Requires a manager, for a field that controls access. @throws ApiError 403 that names the field. */
export function requireManager({ user_access_level }: DashboardAccess, field: string): void {
  if (user_access_level === 'manager') return;
  throw permissionDenied(
    `Your access level on this dashboard is '${user_access_level}'; changing '${field}' requires 'manager'.`,
    field,
  );
}

/** What a user may do with a dashboard. Each level includes the levels before it. */
export const accessLevels = ['none', 'viewer', 'editor', 'manager'] as const;
export type AccessLevel = (typeof accessLevels)[number];

/** Who may edit a dashboard; higher is stricter. */
export const restrictionLevels = [21, 37] as const;
export type RestrictionLevel = (typeof restrictionLevels)[number];

/** What the calling user may do, comparable with restriction levels. */
export const privilegeLevels = [21, 37] as const;

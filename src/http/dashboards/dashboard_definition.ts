import type { CreateDashboardBody, UpdateDashboardBody } from '../schemas/dashboard.ts';
import { defaultAccess, type AccessLevel, type RestrictionLevel } from './access_levels.ts';

/** The members of a dashboard that people write, but for its collaborators. */
export interface DashboardDefinition {
  readonly name: string;
  readonly description: string;
  readonly pinned: boolean;
  readonly tags: readonly string[];
  readonly restriction_level: RestrictionLevel;
  readonly default_access_level: AccessLevel;
}

/** What a member is when nobody wrote it, and what null resets it to. */
const defaultDefinition: Omit<DashboardDefinition, 'name'> = {
  description: '',
  pinned: false,
  tags: [],
  ...defaultAccess,
};

/** A dashboard as a body describes a new one. */
export const newDefinition = (body: CreateDashboardBody): DashboardDefinition =>
  definitionFrom({ ...defaultDefinition, name: body.name }, body);

/** The definition that a body makes of another one: absent keeps, null resets to the default. */
export const definitionFrom = (
  base: DashboardDefinition,
  body: CreateDashboardBody | UpdateDashboardBody,
): DashboardDefinition => ({
  name: body.name ?? base.name,
  description: orDefault(body.description, base.description, defaultDefinition.description),
  pinned: orDefault(body.pinned, base.pinned, defaultDefinition.pinned),
  tags: body.tags === undefined ? base.tags : normalizeTags(body.tags ?? defaultDefinition.tags),
  restriction_level: orDefault(
    body.restriction_level,
    base.restriction_level,
    defaultDefinition.restriction_level,
  ),
  default_access_level: orDefault(
    body.default_access_level,
    base.default_access_level,
    defaultDefinition.default_access_level,
  ),
});

const orDefault = <Value>(given: Value | null | undefined, kept: Value, fallback: Value): Value =>
  given === undefined ? kept : (given ?? fallback);

/** Tags that differ only in case or blanks around them are one, as people who look for them expect. */
const normalizeTags = (tags: readonly string[]): string[] =>
  [...new Set(tags.map((tag) => tag.trim().toLowerCase()))].sort();

import type { CreateDashboardBody, UpdateDashboardBody } from '../schemas/dashboard.ts';
import { defaultAccess, type AccessLevel, type RestrictionLevel } from './access_levels.ts';

/** The writable fields of a dashboard, without its collaborators. */
export interface DashboardDefinition {
  readonly name: string;
  readonly description: string;
  readonly pinned: boolean;
  readonly tags: readonly string[];
  readonly restriction_level: RestrictionLevel;
  readonly default_access_level: AccessLevel;
}

/** The value of a field that is omitted on creation or reset with null. */
const defaultDefinition: Omit<DashboardDefinition, 'name'> = {
  description: '',
  pinned: false,
  tags: [],
  ...defaultAccess,
};

/** The definition of a new dashboard. */
export const newDefinition = (body: CreateDashboardBody): DashboardDefinition =>
  definitionFrom({ ...defaultDefinition, name: body.name }, body);

/** Applies a body to a definition. An omitted field keeps its value; null resets it to its default. */
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

/** Trims, lower-cases, deduplicates and sorts tags, so that a tag has one spelling. */
const normalizeTags = (tags: readonly string[]): string[] =>
  [...new Set(tags.map((tag) => tag.trim().toLowerCase()))].sort();

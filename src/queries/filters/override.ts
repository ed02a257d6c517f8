import type { FiltersOverride } from '../query_kind.ts';
import type { PropertyFilters } from './schema.ts';

/** A query's own property filters and those of a dashboard, of which all have to hold. @throws QueryInvalid */
export function withOverride(
  own: PropertyFilters | null | undefined,
  more: FiltersOverride['properties'],
): PropertyFilters | null {
  if (!more?.length) return own ?? null;
  throw new Error('Not built yet.');
}

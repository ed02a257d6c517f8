import { presentationNames } from './filter_schema.ts';
import type { FunnelsQuery } from './schema.ts';

/** Members of a query that only label it. */
const labels: ReadonlySet<string> = new Set([
  ...(['name', 'tags', 'version', 'response', 'dataColorTheme'] as const),
]);

/** What of a query decides its answer, in which steps have their names. */
export function cacheFormOf(query: FunnelsQuery): unknown {
  const asked = Object.entries(query).filter(([name]) => !labels.has(name));
  const filter = Object.entries(query.funnelsFilter).filter(([name]) => !presentationNames.has(name));
  return said({ ...Object.fromEntries(asked), funnelsFilter: Object.fromEntries(filter) });
}

/** Without members that say nothing, at any depth. */
function said(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(said);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null && member !== undefined)
      .map(([name, member]) => [name, said(member)]),
  );
}

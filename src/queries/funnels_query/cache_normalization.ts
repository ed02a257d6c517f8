import { ignoredFieldNames } from '../ignored_fields.ts';
import { presentationNames } from './filter_schema.ts';
import type { FunnelsQuery } from './schema.ts';

/** The parts of a query that its result depends on. The names of steps are part of the result. */
export function normalizeForCache(query: FunnelsQuery): unknown {
  const requested = Object.entries(query).filter(
    ([name]) => !ignoredFieldNames.has(name) && name !== 'dataColorTheme',
  );
  const filter = Object.entries(query.funnelsFilter).filter(([name]) => !presentationNames.has(name));
  return withoutNulls({ ...Object.fromEntries(requested), funnelsFilter: Object.fromEntries(filter) });
}

/** Removes null fields at any depth. */
function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutNulls);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null && inner !== undefined)
      .map(([name, inner]) => [name, withoutNulls(inner)]),
  );
}

import { unreadNames } from '../unread_members.ts';
import { presentationNames } from './filter_schema.ts';
import type { FunnelsQuery } from './schema.ts';

/** What of a query decides its answer, in which steps have their names. */
export function cacheFormOf(query: FunnelsQuery): unknown {
  const asked = Object.entries(query).filter(([name]) => !unreadNames.has(name) && name !== 'dataColorTheme');
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

import type { Relations } from '../../source/relations.ts';
import type { QueryKind } from '../query_kind.ts';
import { unreadNames } from '../unread_members.ts';
import { overrideEvents } from './override.ts';
import { runEvents } from './run.ts';
import { eventsQuerySchema, type EventsQuery } from './schema.ts';
import { freshnessOf } from './time_bounds.ts';

/** Events, or what they have in common. */
export const eventsQueryKind = (relations: Relations): QueryKind<EventsQuery> => ({
  kind: 'EventsQuery',
  schema: eventsQuerySchema,
  freshness: freshnessOf,
  variables: () => [],
  override: overrideEvents,
  cacheForm: (query) =>
    Object.fromEntries(Object.entries(query).filter(([member]) => !unreadNames.has(member))),
  run: (query, context) => runEvents(query, context, relations),
});

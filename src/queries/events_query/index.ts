import type { Relations } from '../../source/relations.ts';
import type { QueryKind } from '../query_kind.ts';
import { ignoredFieldNames } from '../ignored_fields.ts';
import { overrideEvents } from './override.ts';
import { runEvents } from './run.ts';
import { eventsQuerySchema, type EventsQuery } from './schema.ts';
import { freshnessOf } from './time_bounds.ts';

/** Lists or aggregates events. */
export const eventsQueryKind = (relations: Relations): QueryKind<EventsQuery> => ({
  kind: 'EventsQuery',
  schema: eventsQuerySchema,
  freshness: freshnessOf,
  variables: () => [],
  override: overrideEvents,
  normalizeForCache: (query) =>
    Object.fromEntries(Object.entries(query).filter(([field]) => !ignoredFieldNames.has(field))),
  run: (query, context) => runEvents(query, context, relations),
});

import { dialectQueryKind } from '../dialect_query/index.ts';
import { usedVariables } from '../dialect_query/placeholders.ts';
import { withOverride } from '../property_filters.ts';
import { funnelsQueryKind } from '../funnels_query/index.ts';
import type { FiltersOverride, QueryFreshness, QueryKind } from '../query_kind.ts';
import { trendsQueryKind } from '../trends_query/index.ts';
import { runActors } from './run.ts';
import { type ActorsQuery, actorsQuerySchema, type ActorsSource } from './schema.ts';

/** All persons, or the persons or groups behind a result. */
export const actorsQueryKind: QueryKind<ActorsQuery> = {
  kind: 'ActorsQuery',
  schema: actorsQuerySchema,
  freshness: ({ source }, project, now) => {
    switch (source?.kind) {
      case 'InsightActorsQuery':
        return trendsQueryKind.freshness(source.source, project, now);
      case 'FunnelsActorsQuery':
        return funnelsQueryKind.freshness(source.source, project, now);
      default:
        return withoutRange;
    }
  },
  variables: ({ source }) => (source?.kind === 'DialectQuery' ? usedVariables(source) : []),
  // Persons have no dates; those of a dashboard apply to the source.
  override: (query, filters) =>
    query.source
      ? { ...query, source: overrideSource(query.source, filters) }
      : { ...query, properties: withOverride(query.properties, filters.properties, 'persons') },
  normalizeForCache: ({ source, select, search, properties, fixedProperties, orderBy, limit, offset }) => ({
    source,
    select,
    search,
    properties,
    fixedProperties,
    orderBy,
    limit,
    offset,
  }),
  run: runActors,
};

const overrideSource = (source: ActorsSource, filters: FiltersOverride): ActorsSource => {
  switch (source.kind) {
    case 'DialectQuery':
      return dialectQueryKind.override(source, filters);
    case 'InsightActorsQuery':
      return { ...source, source: trendsQueryKind.override(source.source, filters) };
    case 'FunnelsActorsQuery':
      return { ...source, source: funnelsQueryKind.override(source.source, filters) };
  }
};

const withoutRange: QueryFreshness = { interval: 'minute', date_to: null };

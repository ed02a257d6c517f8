import type { Relations } from '../../source/relations.ts';
import { withOverriddenDates } from '../dates/override.ts';
import { rangeFreshness } from '../dates/range_freshness.ts';
import { withOverride } from '../filters/override.ts';
import type { QueryKind } from '../query_kind.ts';
import { cacheFormOf } from './cache_form.ts';
import { runTrends } from './run.ts';
import { trendsQuerySchema, type TrendsQuery } from './schema.ts';

/** Numbers of events over time. */
export const trendsQueryKind = (relations: Relations): QueryKind<TrendsQuery> => ({
  kind: 'TrendsQuery',
  schema: trendsQuerySchema,
  freshness: rangeFreshness,
  variables: () => [],
  override: (query, filters) => ({
    ...query,
    dateRange: withOverriddenDates(query.dateRange, filters),
    properties: withOverride(query.properties, filters.properties),
  }),
  cacheForm: cacheFormOf,
  run: (query, context) => runTrends(query, context, relations),
});

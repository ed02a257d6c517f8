import type { Relations } from '../../source/relations.ts';
import { rangeFreshness } from '../dates/range_freshness.ts';
import { overriddenInsight } from '../insight_fields.ts';
import type { QueryKind } from '../query_kind.ts';
import { normalizeForCache } from './cache_normalization.ts';
import { runTrends } from './run.ts';
import { trendsQuerySchema, type TrendsQuery } from './schema.ts';

/** Aggregates of events over time. */
export const trendsQueryKind = (relations: Relations): QueryKind<TrendsQuery> => ({
  kind: 'TrendsQuery',
  schema: trendsQuerySchema,
  freshness: rangeFreshness,
  variables: () => [],
  override: overriddenInsight,
  normalizeForCache: normalizeForCache,
  run: (query, context) => runTrends(query, context, relations),
});

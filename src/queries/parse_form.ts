import { digestOf } from './cache_key.ts';
import type { ParseTask, QueryForm } from './query_executor.ts';
import type { QueryKinds } from './registry.ts';

/** Parses the query of a request and applies the filters of its dashboard. @throws QueryError, QuerySchemaError */
export function parseForm(
  kinds: QueryKinds,
  { query, filters_override, project, now }: ParseTask,
): QueryForm {
  const original = kinds.parse(query);
  const parsed = filters_override ? original.override(filters_override) : original;
  return {
    kind: parsed.kind,
    query: parsed.query as QueryForm['query'],
    digest: digestOf(parsed.normalizedForCache),
    freshness: parsed.freshness(project, now),
    variables: parsed.variables(),
  };
}

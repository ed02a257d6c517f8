import type { QueryResult, StoredOutput } from './results.ts';

/** The response body of a query: its output and the fields that all calculated and cached results share. */
export function toQueryResponse(
  output: StoredOutput,
  { cache_key, computed_at }: QueryResult,
  more: { readonly is_cached: boolean; readonly query_status: object | null },
): Record<string, unknown> {
  const { next_refresh_ms, more: ofKind, ...fields } = output;
  return {
    ...ofKind,
    ...fields,
    is_cached: more.is_cached,
    cache_key,
    last_refresh: computed_at.toISOString(),
    next_allowed_client_refresh: new Date(computed_at.getTime() + next_refresh_ms).toISOString(),
    query_status: more.query_status,
  };
}

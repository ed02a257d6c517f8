import type { QueryResultOutput } from './results.ts';

/** A response body: fields of the endpoint and, for a result, those of its output, which are JSON already. */
export interface QueryResponse {
  readonly fields: Readonly<Record<string, unknown>>;
  /** Parts of a JSON object, or null for a response without a result. */
  readonly json: readonly Uint8Array[] | null;
}

/** The response body of a query: its output and the fields that all calculated and cached results share. */
export function toQueryResponse(
  { json, cache_key, computed_at, next_refresh_ms }: QueryResultOutput,
  more: { readonly is_cached: boolean; readonly query_status: object | null },
): QueryResponse {
  return {
    fields: {
      is_cached: more.is_cached,
      cache_key,
      last_refresh: computed_at.toISOString(),
      next_allowed_client_refresh: new Date(computed_at.getTime() + next_refresh_ms).toISOString(),
      query_status: more.query_status,
    },
    json,
  };
}

/**
 * The parts of a response. They are neither parsed nor copied: with an output of many megabytes, that would stop the
 * server.
 */
export function serializeQueryResponse({ fields, json }: QueryResponse): readonly Uint8Array[] {
  const ofEndpoint = Buffer.from(JSON.stringify(fields));
  const last = json?.at(-1);
  if (json === null || last === undefined) return [ofEndpoint];
  return [...json.slice(0, -1), last.subarray(0, -1), Buffer.from(','), ofEndpoint.subarray(1)];
}

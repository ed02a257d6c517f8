import { type DeploymentSettings, workflowIds } from '../contract/workflow_ids.ts';
import type { Pool } from '../journal/database.ts';
import { loadOutput, type QueryResultOutput } from './results.ts';
import { hasEnded, type QueryStatus } from './statuses.ts';

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

/** The status of a query in the API's format. */
export interface StatusResponse {
  readonly id: string;
  readonly query_async: boolean;
  readonly team_id: number;
  readonly insight_id: null;
  readonly dashboard_id: null;
  readonly labels: null;
  readonly complete: boolean;
  readonly error: boolean;
  readonly error_message: string | null;
  readonly results: Record<string, unknown> | null;
  readonly start_time: string;
  readonly pickup_time: string | null;
  readonly end_time: string | null;
  readonly expiration_time: string | null;
  /** Workflow id of a background query. */
  readonly task_id: string | null;
  readonly query_progress: {
    readonly bytes_read: number;
    readonly rows_read: number;
    readonly estimated_rows_total: number | null;
    readonly time_elapsed: number;
    readonly active_cpu_time: number | null;
  } | null;
}

/** The response for a status, without the results. */
export function toStatusResponse(status: QueryStatus, settings: DeploymentSettings): StatusResponse {
  const { progress, time_elapsed } = status;
  return {
    id: status.id,
    query_async: status.query_async,
    team_id: status.team_id,
    insight_id: null,
    dashboard_id: null,
    labels: null,
    complete: hasEnded(status),
    error: status.status === 'failed' || status.status === 'cancelled',
    error_message: status.error_message,
    results: null,
    start_time: status.start_time,
    pickup_time: status.pickup_time,
    end_time: status.end_time,
    expiration_time: status.expiration_time,
    task_id: status.query_async ? workflowIds(settings).query(status) : null,
    query_progress:
      status.status === 'running'
        ? {
            bytes_read: progress?.bytes_read ?? 0,
            rows_read: progress?.rows_read ?? 0,
            estimated_rows_total: progress?.estimated_rows_total ?? null,
            time_elapsed: time_elapsed ?? 0,
            active_cpu_time: null,
          }
        : null,
  };
}

/** The parts of the response body for a status, with the results of a completed query. */
export async function serializeStatus(
  pool: Pool,
  status: QueryStatus,
  settings: DeploymentSettings,
): Promise<readonly Uint8Array[]> {
  const response = toStatusResponse(status, settings);
  const found =
    status.result_id === null ? undefined : await loadOutput(pool, status.team_id, status.result_id);
  if (!found) return [Buffer.from(JSON.stringify({ query_status: response }))];
  const results = serializeQueryResponse(toQueryResponse(found, { is_cached: false, query_status: null }));
  const beforeResults = JSON.stringify({ query_status: { ...response, results: undefined } }).slice(
    0,
    -'}}'.length,
  );
  return [Buffer.from(`${beforeResults},"results":`), ...results, Buffer.from('}}')];
}

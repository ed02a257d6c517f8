import type { Settings } from '../config/settings.ts';
import type { JsonValue } from '../domain/event.ts';
import type { Pool } from '../journal/database.ts';
import type { QueryExecutor, QueryForm } from './query_executor.ts';
import type { RefreshMode } from './freshness.ts';
import { cacheKeyOf } from './cache_key.ts';
import { readQueryProject } from './postgres_warehouse.ts';
import type { FiltersOverride, QueryProject } from './query_kind.ts';
import type { QueryJob } from './statuses.ts';
import { listVariables, resolveVariables, type VariableOverride } from './variables.ts';

/** A validated request to the query endpoint; `query` itself is not parsed yet. */
export interface QueryRequest {
  readonly team_id: number;
  /** The API key, which has slots of its own. */
  readonly key_id: string;
  /** The user of the key, who alone can read and cancel the query. */
  readonly user_id: number;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  readonly query: Readonly<Record<string, unknown>>;
  readonly refresh: RefreshMode;
  readonly client_query_id: string | null;
  readonly filters_override: FiltersOverride | null;
  readonly variables_override: Readonly<Record<string, VariableOverride>>;
}

/** A parsed query with everything its result depends on. */
export interface PreparedQuery {
  readonly form: QueryForm;
  readonly variables: Readonly<Record<string, JsonValue>>;
  readonly project: QueryProject;
  readonly now: Date;
  readonly cache_key: string;
}

/**
 * Parses the query of a request, applies the overrides and computes the cache key.
 * @throws QueryError, QuerySchemaError
 */
export async function prepareQuery(
  {
    pool,
    executor,
    settings,
  }: {
    readonly pool: Pool;
    readonly executor: QueryExecutor;
    readonly settings: Pick<Settings, 'EXPORTD_QUERY_MAX_ROWS'>;
  },
  request: QueryRequest,
): Promise<PreparedQuery> {
  const { project, now } = await readQueryProject(pool, request.team_id);
  const { query, filters_override } = request;
  const form = await executor.parse({ query, filters_override, project, now });
  const used = form.variables;
  const overrides = request.variables_override;
  const variables =
    used.length > 0 || Object.keys(overrides).length > 0
      ? resolveVariables(used, await listVariables(pool, request.team_id), overrides)
      : {};
  const { kind, digest } = form;
  const row_limit = settings.EXPORTD_QUERY_MAX_ROWS;
  const cache_key = cacheKeyOf({ kind, digest, variables, project, row_limit });
  return { form, variables, project, now, cache_key };
}

/** The job that is stored for a query. */
export const jobOf = ({ form, variables, project, cache_key }: PreparedQuery): QueryJob => ({
  team_id: project.team_id,
  kind: form.kind,
  query: form.query,
  variables,
  cache_key,
});

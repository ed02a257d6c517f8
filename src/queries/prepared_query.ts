import type { Settings } from '../config/settings.ts';
import type { JsonValue } from '../domain/json_value.ts';
import type { Pool } from '../journal/database.ts';
import { cacheKeyOf } from './cache_key.ts';
import { readQueryProject } from './project.ts';
import type { FiltersOverride, QueryProject } from './query_kind.ts';
import type { RefreshMode } from './refresh_modes.ts';
import type { ParsedQuery, QueryKinds } from './registry.ts';
import { resolveVariables, type VariableOverride } from './resolve_variables.ts';
import type { QueryJob } from './statuses.ts';
import { listVariables } from './variables.ts';

/** A validated request to the query endpoint; `query` itself is not parsed yet. */
export interface QueryRequest {
  readonly team_id: number;
  readonly query: Readonly<Record<string, unknown>>;
  readonly refresh: RefreshMode;
  readonly client_query_id: string | null;
  readonly filters_override: FiltersOverride | null;
  readonly variables_override: Readonly<Record<string, VariableOverride>>;
}

/** A parsed query with everything its result depends on. */
export interface PreparedQuery {
  readonly parsed: ParsedQuery;
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
    kinds,
    settings,
  }: {
    readonly pool: Pool;
    readonly kinds: QueryKinds;
    readonly settings: Pick<Settings, 'EXPORTD_QUERY_MAX_ROWS'>;
  },
  request: QueryRequest,
): Promise<PreparedQuery> {
  const { project, now } = await readQueryProject(pool, request.team_id);
  const original = kinds.parse(request.query);
  const parsed = request.filters_override ? original.override(request.filters_override) : original;
  const used = parsed.variables();
  const overrides = request.variables_override;
  const variables =
    used.length > 0 || Object.keys(overrides).length > 0
      ? resolveVariables(used, await listVariables(pool, request.team_id), overrides)
      : {};
  const { kind, normalizedForCache } = parsed;
  const row_limit = settings.EXPORTD_QUERY_MAX_ROWS;
  const cache_key = cacheKeyOf({ kind, normalizedForCache, variables, project, row_limit });
  return { parsed, variables, project, now, cache_key };
}

/** The job that is stored for a query. */
export const jobOf = ({ parsed, variables, project, cache_key }: PreparedQuery): QueryJob => ({
  team_id: project.team_id,
  kind: parsed.kind,
  query: parsed.query,
  variables,
  cache_key,
});

import { createHash } from 'node:crypto';
import type { JsonValue } from '../domain/event.ts';
import type { ProjectSchema } from './dialect_reader.ts';
import type { DraftInput } from './draft_sql/draft_by_rules.ts';
import type { QueryConnection } from './query_connection.ts';
import type {
  FiltersOverride,
  QueryFreshness,
  QueryProgress,
  QueryProject,
  UsedVariable,
} from './query_kind.ts';
import type { QueryKinds } from './registry.ts';

/** Increase when the output of a query changes its shape or meaning. */
const version = 1;

/**
 * The cache key of a query. Two queries of a project share a key only if they must have the same output; the caller and
 * the formatting of the JSON do not matter.
 */
export function cacheKeyOf(query: {
  readonly kind: string;
  /** `digestOf` the parts of the query that its output depends on. */
  readonly digest: string;
  readonly variables: Readonly<Record<string, JsonValue>>;
  readonly project: QueryProject;
  readonly row_limit: number;
}): string {
  const { kind, digest, variables, project, row_limit } = query;
  const form = canonicalJson({ version, kind, query: digest, variables, project, row_limit });
  return `cache_${createHash('md5').update(`query_${form}`).digest('hex')}`;
}

/** A digest of a query, apart from fields that are null and from its tags. A query can be long: computed once. */
export const digestOf = (normalizedForCache: unknown): string =>
  createHash('sha256')
    .update(canonicalJson(withoutNulls(normalizedForCache)))
    .digest('base64url');

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Drops fields that are null, and `tags`, which only labels a query. */
function withoutNulls(query: unknown): unknown {
  if (!isObject(query)) return query;
  const fields = Object.entries(query).filter(
    ([name, value]) => value !== null && value !== undefined && name !== 'tags',
  );
  return Object.fromEntries(fields);
}

/** JSON with sorted object keys. */
const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_name, inner: unknown) =>
    isObject(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  );

/** The query of a request, before it is parsed. */
export interface ParseTask {
  readonly query: Readonly<Record<string, unknown>>;
  readonly filters_override: FiltersOverride | null;
  readonly project: QueryProject;
  readonly now: Date;
}

/** What a process knows of a query without running it: plain data, which another thread may have computed. */
export interface QueryForm {
  readonly kind: string;
  /** JSON with all defaults filled in; parses to itself. */
  readonly query: Readonly<Record<string, unknown>>;
  /** Digest of the parts that the output depends on. */
  readonly digest: string;
  readonly freshness: QueryFreshness;
  readonly variables: readonly UsedVariable[];
}

/** A text of the dialect that is compiled and not run. */
export interface CheckTask extends ProjectSchema {
  readonly query: string;
}

/** A prompt that a query is drafted for, by rules. */
export interface DraftTask {
  readonly input: DraftInput;
  readonly project: Pick<QueryProject, 'team_id'>;
}

/** One run of a query, within its limits. */
export interface RunTask extends Pick<QueryForm, 'kind' | 'query'> {
  readonly variables: Readonly<Record<string, JsonValue>>;
  readonly project: QueryProject;
  readonly now: Date;
  readonly row_limit: number;
  readonly byte_limit: number;
}

/** The output of a query. */
export interface ComputedOutput {
  /** A JSON object: the response without the fields that the endpoint adds. */
  readonly json: Uint8Array;
  /** Milliseconds until clients should request a refresh. */
  readonly next_refresh_ms: number;
}

/** What the process of a query does for it while it is computed. */
export interface RunEnvironment {
  readonly connection: QueryConnection;
  readonly progress: (progress: QueryProgress) => void;
  /** Ends the computation, at once even if it is busy, where the executor can. */
  readonly signal: AbortSignal;
}

/** Computes queries: parses them, compiles their statements and folds the rows. */
export interface QueryExecutor {
  /** @throws QueryError, QuerySchemaError */
  parse(task: ParseTask): Promise<QueryForm>;
  /** @throws QueryError `dialect_error` if the text does not compile */
  check(task: CheckTask): Promise<void>;
  /** @throws QueryError `unclear` */
  draft(task: DraftTask): Promise<string>;
  /** @throws QueryError, the errors of the connection, the reason of the signal */
  run(task: RunTask, environment: RunEnvironment): Promise<ComputedOutput>;
  close(): Promise<void>;
}

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

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { JsonValue } from '../domain/event.ts';
import type { ProjectSchema } from './dialect_reader.ts';
import type { DraftInput } from './draft_sql/draft_by_rules.ts';
import type {
  QueryConnection,
  FiltersOverride,
  QueryContext,
  QueryFreshness,
  QueryInterval,
  QueryKind,
  QueryOutput,
  QueryProgress,
  QueryProject,
  UsedVariable,
} from './query_kind.ts';
import { QueryError } from './query_errors.ts';

/** Increase when the output of a query changes its shape or meaning. */
const version = 2;

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

/** A query that its kind has parsed. */
interface ParsedQuery {
  readonly kind: string;
  /** JSON with all defaults filled in; parses to itself. */
  readonly query: unknown;
  /** The parts that the output depends on. */
  readonly normalizedForCache: unknown;
  /** Whether the response says what the query cost, for which its statements run a second time. */
  readonly explains: boolean;
  freshness(project: QueryProject, now: Date): QueryFreshness;
  variables(): readonly UsedVariable[];
  override(filters: FiltersOverride): ParsedQuery;
  run(context: QueryContext): Promise<QueryOutput>;
}

/** A kind whose query type is hidden, so that kinds with different queries fit in one registry. */
interface BoundQueryKind {
  readonly names: readonly string[];
  /** @throws QuerySchemaError */
  parse(query: unknown, path: readonly string[]): ParsedQuery;
}

/** A query that does not match the schema of its kind. */
export class QuerySchemaError extends Error {
  override readonly name = 'QuerySchemaError';
  readonly error: z.ZodError;
  /** Path of the query in the request body. */
  readonly path: readonly string[];

  constructor(error: z.ZodError, path: readonly string[]) {
    super('The query does not match the schema of its kind.');
    this.error = error;
    this.path = path;
  }
}

const explained = z.looseObject({ explain: z.literal(true) });

/** Hides the query type of a kind. */
export function bindQueryKind<Query>(kind: QueryKind<Query>): BoundQueryKind {
  const bind = (query: Query): ParsedQuery => {
    const normalized = kind.normalizeForCache ? kind.normalizeForCache(query) : query;
    const explains = explained.safeParse(query).success;
    return {
      kind: kind.kind,
      query,
      normalizedForCache: explains ? { explained: normalized } : normalized,
      explains,
      freshness: (project, now) => kind.freshness(query, project, now),
      variables: () => kind.variables(query),
      override: (filters) => bind(kind.override(query, filters)),
      run: (context) => kind.run(query, context),
    };
  };
  return {
    names: [kind.kind, ...(kind.aliases ?? [])],
    parse: (query, path) => {
      const parsed = kind.schema.safeParse(query);
      if (!parsed.success) throw new QuerySchemaError(parsed.error, path);
      return bind(parsed.data);
    },
  };
}

/** The query kinds of a process. */
export interface QueryKinds {
  /** Parses the field `query` of a request. @throws QueryError for an unknown kind, QuerySchemaError */
  parse(query: Readonly<Record<string, unknown>>): ParsedQuery;
}

/** Kinds of saved views that only wrap the query in their field `source`. */
const wrappers = new Set(['DataTableNode', 'DataVisualizationNode', 'InsightVizNode']);
const wrapped = z.looseObject({ kind: z.string() });

/** Creates a registry of query kinds. */
export function createQueryKinds(kinds: readonly BoundQueryKind[]): QueryKinds {
  const byName = new Map(kinds.flatMap((kind) => kind.names.map((name) => [name, kind] as const)));
  const parse = (query: Readonly<Record<string, unknown>>, path: readonly string[]): ParsedQuery => {
    if (typeof query.kind === 'string' && wrappers.has(query.kind)) {
      const source = wrapped.safeParse(query.source);
      if (!source.success)
        throw new QueryError('invalid_input', 'This field must be a query.', {
          attr: [...path, 'source'].join('__'),
        });
      return parse(source.data, [...path, 'source']);
    }
    const kind = typeof query.kind === 'string' ? byName.get(query.kind) : undefined;
    if (!kind)
      throw new QueryError(
        'invalid_input',
        `Unknown query kind. Supported kinds: ${[...byName.keys()].sort().join(', ')}.`,
        { attr: [...path, 'kind'].join('__') },
      );
    return kind.parse({ ...query, kind: kind.names[0] }, path);
  };
  return { parse: (query) => parse(query, ['query']) };
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Maximum ages of a cached result in milliseconds, by the query's interval. */
interface AgeLimits {
  /** For `blocking` and `async`. */
  readonly very_fresh: number;
  /** For `lazy_async`. */
  readonly somewhat_fresh: number;
}

/** The limits of PostHog-compatible clients; `none` is for queries without an interval. */
const ageLimits: Readonly<Record<NonNullable<QueryInterval> | 'none', AgeLimits>> = {
  minute: { very_fresh: 5 * minute, somewhat_fresh: 15 * minute },
  hour: { very_fresh: hour, somewhat_fresh: 2 * hour },
  day: { very_fresh: 6 * hour, somewhat_fresh: 12 * hour },
  week: { very_fresh: day, somewhat_fresh: day },
  month: { very_fresh: day, somewhat_fresh: day },
  none: { very_fresh: 6 * hour, somewhat_fresh: 12 * hour },
};

/** A date range is closed if it ended this long before its result was computed. */
const closedForMs = 10_000;

/** Whether a result computed at `computedAt` is still fresh enough. Results of closed ranges stay fresh. */
export function isFresh(
  computedAt: Date,
  { interval, date_to }: Pick<QueryFreshness, 'interval' | 'date_to'>,
  now: Date,
  limit: keyof AgeLimits,
): boolean {
  if (date_to !== null && date_to.getTime() < computedAt.getTime() - closedForMs) return true;
  return now.getTime() - computedAt.getTime() < ageLimits[interval ?? 'none'][limit];
}

/** How long clients should wait before they request a refresh, unless the kind sets it. */
export const defaultNextRefreshMs = minute;

/** The values of the field `refresh`. */
export const refreshNames = [
  'blocking',
  'async',
  'lazy_async',
  'force_blocking',
  'force_async',
  'force_cache',
] as const;
export type RefreshMode = (typeof refreshNames)[number];

/** Which cached results each mode accepts, and what it does without one. */
export const refreshModes: Readonly<
  Record<
    RefreshMode,
    {
      readonly accepts: keyof AgeLimits | 'anything' | 'nothing';
      readonly otherwise: 'run' | 'start' | 'miss';
    }
  >
> = {
  blocking: { accepts: 'very_fresh', otherwise: 'run' },
  async: { accepts: 'very_fresh', otherwise: 'start' },
  lazy_async: { accepts: 'somewhat_fresh', otherwise: 'start' },
  force_blocking: { accepts: 'nothing', otherwise: 'run' },
  force_async: { accepts: 'nothing', otherwise: 'start' },
  force_cache: { accepts: 'anything', otherwise: 'miss' },
};

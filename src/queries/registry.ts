import { z } from 'zod';
import { QueryError } from './query_errors.ts';
import type {
  FiltersOverride,
  QueryOutput,
  QueryContext,
  QueryFreshness,
  QueryKind,
  QueryProject,
  UsedVariable,
} from './query_kind.ts';

/** A query that its kind understands. */
export interface ParsedQuery {
  readonly kind: string;
  /** JSON with all defaults filled in; parses to itself. */
  readonly query: unknown;
  /** What of it decides the answer. */
  readonly normalizedForCache: unknown;
  freshness(project: QueryProject, now: Date): QueryFreshness;
  variables(): readonly UsedVariable[];
  override(filters: FiltersOverride): ParsedQuery;
  run(context: QueryContext): Promise<QueryOutput>;
}

/** A kind whose type of query nobody else has to know. */
export interface BoundQueryKind {
  readonly names: readonly string[];
  /** @throws QuerySchemaError */
  parse(query: unknown, path: readonly string[]): ParsedQuery;
}

/** A query that does not fit its kind's schema. */
export class QuerySchemaError extends Error {
  override readonly name = 'QuerySchemaError';
  readonly error: z.ZodError;
  /** Where in the request's body the query is. */
  readonly path: readonly string[];

  constructor(error: z.ZodError, path: readonly string[]) {
    super('The query does not fit its kind.');
    this.error = error;
    this.path = path;
  }
}

/** Binds a kind, so that kinds with different queries can stand in one registry. */
export function bindQueryKind<Query>(kind: QueryKind<Query>): BoundQueryKind {
  const bind = (query: Query): ParsedQuery => ({
    kind: kind.kind,
    query,
    normalizedForCache: kind.normalizeForCache ? kind.normalizeForCache(query) : query,
    freshness: (project, now) => kind.freshness(query, project, now),
    variables: () => kind.variables(query),
    override: (filters) => bind(kind.override(query, filters)),
    run: (context) => kind.run(query, context),
  });
  return {
    names: [kind.kind, ...(kind.aliases ?? [])],
    parse: (query, path) => {
      const parsed = kind.schema.safeParse(query);
      if (!parsed.success) throw new QuerySchemaError(parsed.error, path);
      return bind(parsed.data);
    },
  };
}

/** The kinds of queries that a process answers. */
export interface QueryKinds {
  /**
   * Parses the member `query` of a request.
   * @throws QueryError for a kind that there is not, QuerySchemaError
   */
  parse(query: Readonly<Record<string, unknown>>): ParsedQuery;
}

/** Kinds of saved views that only show the query in their member `source`. */
const wrappers = new Set(['DataTableNode', 'DataVisualizationNode', 'InsightVizNode']);
const wrapped = z.looseObject({ kind: z.string() });

/** A registry of kinds. */
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
        `There is no such kind of query. Kinds are: ${[...byName.keys()].sort().join(', ')}.`,
        { attr: [...path, 'kind'].join('__') },
      );
    return kind.parse({ ...query, kind: kind.names[0] }, path);
  };
  return { parse: (query) => parse(query, ['query']) };
}

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

/** A query that its kind has parsed. */
export interface ParsedQuery {
  readonly kind: string;
  /** JSON with all defaults filled in; parses to itself. */
  readonly query: unknown;
  /** The parts that the output depends on. */
  readonly normalizedForCache: unknown;
  freshness(project: QueryProject, now: Date): QueryFreshness;
  variables(): readonly UsedVariable[];
  override(filters: FiltersOverride): ParsedQuery;
  run(context: QueryContext): Promise<QueryOutput>;
}

/** A kind whose query type is hidden, so that kinds with different queries fit in one registry. */
export interface BoundQueryKind {
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

/** Hides the query type of a kind. */
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

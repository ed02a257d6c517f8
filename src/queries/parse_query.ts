/** Parses the query of a request by its kind. */
import * as z from 'zod';
import { digestOf } from './cache_key.ts';
import { QueryError } from './query_errors.ts';
import type { ParseTask, QueryForm } from './query_executor.ts';
import type {
  FiltersOverride,
  QueryContext,
  QueryFreshness,
  QueryKind,
  QueryOutput,
  QueryProject,
  UsedVariable,
} from './query_kind.ts';

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
    const present = withoutNullMembers({ ...query, kind: kind.names[0] });
    return kind.parse(present, path);
  };
  return { parse: (query) => parse(query, ['query']) };
}

/** Records of values for the text of a query, of which null is one. The `values` of a group of filters are a list. */
const valueFields: ReadonlySet<string> = new Set(['values', 'variables']);

/** A query without the members that are null, at any depth: a null member is an absent one. */
function withoutNullMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNullMembers);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([name, member]) => [
        name,
        valueFields.has(name) && isObject(member) ? member : withoutNullMembers(member),
      ]),
  );
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

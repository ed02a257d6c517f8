import { createHash } from 'node:crypto';
import type { JsonValue } from '../domain/json_value.ts';
import type { QueryProject } from './query_kind.ts';

/** Increase when the output of a query changes its shape or meaning. */
const version = 1;

/**
 * The cache key of a query. Two queries of a project share a key only if they must have the same output; the caller and
 * the formatting of the JSON do not matter.
 */
export function cacheKeyOf(query: {
  readonly kind: string;
  readonly normalizedForCache: unknown;
  readonly variables: Readonly<Record<string, JsonValue>>;
  readonly project: QueryProject;
  readonly row_limit: number;
}): string {
  const { kind, normalizedForCache, variables, project, row_limit } = query;
  const form = canonicalJson({
    version,
    kind,
    query: withoutNulls(normalizedForCache),
    variables,
    project,
    row_limit,
  });
  return `cache_${createHash('md5').update(`query_${form}`).digest('hex')}`;
}

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

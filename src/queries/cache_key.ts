import { createHash } from 'node:crypto';
import type { JsonValue } from '@exportd/dialect/resolve/placeholders';
import type { QueryProject } from './query_kind.ts';

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

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

import type { Expression } from '../../dialect/ast.ts';

/** What a filter applies to, and its path in the request. */
export interface FilterTarget {
  /** The rows that are filtered. */
  readonly scope: 'events' | 'persons' | 'groups' | 'sessions';
  /** Path of the field, such as `query__series__0__properties`. */
  readonly attr: string;
  /** The name of the relation in FROM, if aliases of SELECT could hide its columns. */
  readonly relation?: string;
  /** For rows of groups: the index of their type, null for any type, and the expression of their keys. */
  readonly groups?: { readonly index: number | null; readonly key: Expression };
}

import type { Expression } from '../../dialect/ast.ts';

/** Where a filter's fields are looked up, and where in the request it stands. */
export interface FilterTarget {
  /** Rows of events, of persons, of groups, or of sessions. */
  readonly scope: 'events' | 'persons' | 'groups' | 'sessions';
  /** Path of the member, such as `query__series__0__properties`. */
  readonly attr: string;
  /** The name of the relation in FROM, where names of SELECT could be taken for its columns. */
  readonly relation?: string;
  /** Of rows of groups: the index of their type, null where they are of any, and what holds their keys. */
  readonly groups?: { readonly index: number | null; readonly key: Expression };
}

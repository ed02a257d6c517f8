import type { Expression } from '../../dialect/ast.ts';
import type { QueryProject } from '../query_kind.ts';
import type { PropertyFilters } from './schema.ts';

/** Where a filter's fields are looked up, and where in the request it stands. */
export interface FilterPlace {
  /** Rows of events, or of persons. */
  readonly scope: 'events' | 'persons';
  /** Path of the member, such as `query__series__0__properties`. */
  readonly attr: string;
}

/** What property filters ask of a row; null where that is nothing. @throws QueryInvalid */
export function filtersCondition(
  filters: PropertyFilters | null | undefined,
  about: FilterPlace,
): Expression | null {
  if (filters === null || filters === undefined) return null;
  throw new Error(`Not built yet: ${about.attr}`);
}

/** What leaves the project's test accounts out; null where the project says nothing. @throws QueryInvalid */
export function testAccountsCondition(project: QueryProject, scope: FilterPlace['scope']): Expression | null {
  if (project.test_account_filters.length === 0) return null;
  throw new Error(`Not built yet: ${scope}`);
}

import type { Expression } from '../../dialect/ast.ts';
import { buildSelect } from '../../dialect/ast_builders.ts';
import type { DialectReader } from '../dialect_reader.ts';
import type { QueryProject } from '../query_kind.ts';
import { testAccountsCondition } from './condition.ts';
import { fallibleConditions } from './fallible_filters.ts';
import type { PropertyFilters } from './schema.ts';

type Compiler = Pick<DialectReader, 'compile'>;

/**
 * Compiles filters of events one by one, so that an error names the filter rather than a generated statement.
 * @param attr path of all the filters
 * @throws QueryError
 */
export function checkFilters(
  filters: PropertyFilters | null | undefined,
  attr: string,
  reader: Compiler,
): void {
  for (const item of fallibleConditions(filters, { scope: 'events', attr }))
    check(item.condition, item.attr, reader);
}

/** Compiles the filters that exclude test accounts. @throws QueryError */
export function checkTestAccounts(project: QueryProject, reader: Compiler): void {
  check(testAccountsCondition(project, 'events'), 'query__filterTestAccounts', reader);
}

function check(condition: Expression | null, attr: string, reader: Compiler): void {
  if (condition !== null)
    reader.compile(buildSelect('select 1 from events where {condition}', { condition }), { attr });
}

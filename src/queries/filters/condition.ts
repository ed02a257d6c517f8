import type { Expression } from '../../dialect/ast.ts';
import { combineConditions } from '../../dialect/ast_builders.ts';
import { parseExpressionAt } from '../parse_fragments.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import { operatorCondition } from './operators.ts';
import type { FilterTarget } from './filter_target.ts';
import {
  propertyFilterListSchema,
  type PropertyFilter,
  type PropertyFilters,
  type PropertyGroup,
} from './schema.ts';
import { operandOf } from './operand.ts';

/** The condition of property filters on a row; null if there is none. @throws QueryError */
export function filtersCondition(
  filters: PropertyFilters | null | undefined,
  target: FilterTarget,
): Expression | null {
  if (filters === null || filters === undefined) return null;
  if ('type' in filters) return groupCondition(filters, target, target.attr);
  return combineConditions(
    'and',
    filters.map((filter, index) => filterCondition(filter, target, `${target.attr}__${index}`)),
  );
}

/** An incomplete filter matches every row, and so does an OR group that contains one. */
function groupCondition(
  { type, values }: PropertyGroup,
  target: FilterTarget,
  attr: string,
): Expression | null {
  const conditions = values.map((item, index) => {
    const path = `${attr}__values__${index}`;
    return 'values' in item ? groupCondition(item, target, path) : filterCondition(item, target, path);
  });
  if (type === 'AND') return combineConditions('and', conditions);
  return conditions.includes(null) ? null : combineConditions('or', conditions);
}

/**
 * The condition of one filter on a row; null if there is none.
 * @param attr path of the filter
 * @throws QueryError
 */
export function filterCondition(
  filter: PropertyFilter,
  target: Omit<FilterTarget, 'attr'>,
  attr: string,
): Expression | null {
  const { type, key } = filter;
  if (type === 'empty' || key === null || key === undefined || key === '') return null;
  if (type === 'hogql') return parseExpressionAt(String(key), `${attr}__key`);
  const operand = operandOf(filter, target, attr);
  const condition = operatorCondition(operand, filter, attr);
  return condition && combineConditions('and', [operand.restriction ?? null, condition]);
}

/**
 * The condition that excludes the project's test accounts; null if the project defines none. For rows of persons, only
 * filters on persons apply.
 * @throws QueryError
 */
export function testAccountsCondition(
  { test_account_filters }: QueryProject,
  scope: FilterTarget['scope'],
  relation?: string,
): Expression | null {
  const attr = 'query__filterTestAccounts';
  const read = propertyFilterListSchema.safeParse(test_account_filters);
  if (!read.success)
    throw new QueryError('invalid_input', "The project's test account filters are invalid.", {
      attr,
    });
  const filters = scope === 'persons' ? read.data.filter(({ type }) => type === 'person') : read.data;
  return combineConditions(
    'and',
    filters.map((filter) =>
      filterCondition(filter, { scope, ...(relation === undefined ? {} : { relation }) }, attr),
    ),
  );
}

import type { Expression } from '../../dialect/ast.ts';
import { joined } from '../../dialect/build.ts';
import { readExpression } from '../dialect_texts.ts';
import { QueryInvalid } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import { operatorCondition } from './operators.ts';
import type { FilterPlace } from './place.ts';
import {
  propertyFilterListSchema,
  type PropertyFilter,
  type PropertyFilters,
  type PropertyGroup,
} from './schema.ts';
import { subjectOf } from './subject.ts';

/** What property filters ask of a row; null where that is nothing. @throws QueryInvalid */
export function filtersCondition(
  filters: PropertyFilters | null | undefined,
  about: FilterPlace,
): Expression | null {
  if (filters === null || filters === undefined) return null;
  if ('type' in filters) return groupCondition(filters, about, about.attr);
  return joined(
    'and',
    filters.map((filter, index) => filterCondition(filter, about, `${about.attr}__${index}`)),
  );
}

/** An unfinished filter holds always, so that a group joined by OR with one in it holds always. */
function groupCondition(
  { type, values }: PropertyGroup,
  about: FilterPlace,
  attr: string,
): Expression | null {
  const conditions = values.map((item, index) => {
    const place = `${attr}__values__${index}`;
    return 'values' in item ? groupCondition(item, about, place) : filterCondition(item, about, place);
  });
  if (type === 'AND') return joined('and', conditions);
  return conditions.includes(null) ? null : joined('or', conditions);
}

/**
 * What one filter asks of a row; null where that is nothing.
 * @param attr path of the filter
 * @throws QueryInvalid
 */
export function filterCondition(
  filter: PropertyFilter,
  about: Omit<FilterPlace, 'attr'>,
  attr: string,
): Expression | null {
  const { type, key } = filter;
  if (type === 'empty' || key === null || key === undefined || key === '') return null;
  if (type === 'hogql') return readExpression(String(key), `${attr}__key`);
  const subject = subjectOf(filter, about, attr);
  const condition = operatorCondition(subject, filter, attr);
  return condition && joined('and', [subject.among ?? null, condition]);
}

/**
 * What leaves the project's test accounts out; null where the project says nothing. Of persons only what it says of
 * persons is asked.
 * @throws QueryInvalid
 */
export function testAccountsCondition(
  { test_account_filters }: QueryProject,
  scope: FilterPlace['scope'],
  relation?: string,
): Expression | null {
  const attr = 'query__filterTestAccounts';
  const read = propertyFilterListSchema.safeParse(test_account_filters);
  if (!read.success)
    throw new QueryInvalid('invalid_input', "The project's filters of test accounts cannot be read.", {
      attr,
    });
  const filters = scope === 'persons' ? read.data.filter(({ type }) => type === 'person') : read.data;
  return joined(
    'and',
    filters.map((filter) =>
      filterCondition(filter, { scope, ...(relation === undefined ? {} : { relation }) }, attr),
    ),
  );
}

import type * as z from 'zod';
import type { Expression } from '@exportd/dialect/ast';
import { buildSelect, combineConditions } from '@exportd/dialect/ast_builders';
import { conditionOfFilters, filterCondition, isOfCohort } from '../filters/condition.ts';
import type { FilterTarget } from '../filters/operand.ts';
import {
  maxLevels,
  type PropertyFilter,
  propertyFilterListSchema,
  type PropertyFilters,
  propertyFiltersSchema,
  type PropertyGroup,
} from '../filters/schema.ts';
import type { DialectReader } from './dialect_reader.ts';
import { asQueryError, QueryError } from './query_errors.ts';
import type { FiltersOverride, QueryProject } from './query_kind.ts';

/** The condition of the filters of a request on a row; null if there is none. @throws QueryError */
export const filtersCondition = (
  filters: PropertyFilters | null | undefined,
  target: FilterTarget,
): Expression | null => asQueryError(() => conditionOfFilters(filters, target));

/**
 * The condition that excludes the project's test accounts; null if the project defines none. For rows of persons, only
 * filters on persons apply.
 * @throws QueryError
 */
export function testAccountsCondition(
  { test_account_filters }: QueryProject,
  scope: FilterTarget['scope'],
  more: Pick<FilterTarget, 'relation' | 'bindings'> = {},
): Expression | null {
  const attr = 'query__filterTestAccounts';
  const read = propertyFilterListSchema.safeParse(test_account_filters);
  if (!read.success)
    throw new QueryError('invalid_input', "The project's test account filters are invalid.", {
      attr,
    });
  const filters =
    scope === 'persons'
      ? read.data.filter((filter) => filter.type === 'person' || isOfCohort(filter))
      : read.data;
  return combineConditions(
    'and',
    filters.map((filter) => asQueryError(() => filterCondition(filter, { scope, ...more }, attr))),
  );
}

/** One property filter of a request. */
interface FilterItem {
  readonly filter: PropertyFilter;
  /** Its path in the request. */
  readonly path: string;
  /** The path that an error of the dialect names: the filter, or its key if that is an expression. */
  readonly attr: string;
}

/**
 * The filters that may fail to compile, at any depth of groups: expressions, fields of sessions, properties of groups,
 * which a source may lack, and dates on columns without times. Properties of events and persons exist under any name.
 * @param attr path of all the filters
 */
export function fallibleFilters(
  filters: PropertyFilters | null | undefined,
  attr: string,
): readonly FilterItem[] {
  if (filters === null || filters === undefined) return [];
  const items = 'type' in filters ? itemsOf(filters.values, `${attr}__values`) : itemsOf(filters, attr);
  return items.filter(({ filter }) => isFallible(filter));
}

/** The conditions of those filters, each with the path that its error names. @throws QueryError */
export const fallibleConditions = (
  filters: PropertyFilters | null | undefined,
  target: FilterTarget,
): readonly { readonly condition: Expression; readonly attr: string }[] =>
  fallibleFilters(filters, target.attr).flatMap(({ filter, path, attr }) => {
    const condition = asQueryError(() => filterCondition(filter, target, path));
    return condition === null ? [] : [{ condition, attr }];
  });

const itemsOf = (values: PropertyGroup['values'], attr: string): readonly FilterItem[] =>
  values.flatMap((item, index): readonly FilterItem[] => {
    const path = `${attr}__${index}`;
    if ('values' in item) return itemsOf(item.values, `${path}__values`);
    return [{ filter: item, path, attr: item.type === 'hogql' ? `${path}__key` : path }];
  });

const alwaysSupported: readonly PropertyFilter['type'][] = [null, undefined, 'event', 'person'];

const isFallible = ({ type, operator }: PropertyFilter): boolean =>
  !alwaysSupported.includes(type) || operator?.startsWith('is_date') === true;

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

const overridePath = 'filters_override__properties';

/**
 * A query's own property filters combined with those of a dashboard; all must match.
 * @param scope the rows that are filtered
 * @throws QueryError with the path of the invalid dashboard filter
 */
export function withOverride(
  own: PropertyFilters | null | undefined,
  more: FiltersOverride['properties'],
  scope: FilterTarget['scope'] = 'events',
): PropertyFilters | null {
  if (!more?.length) return own ?? null;
  const read = propertyFilterListSchema.safeParse(more);
  if (!read.success) throw invalidFilter(read.error);
  filtersCondition(read.data, { scope, attr: overridePath });
  if (own === null || own === undefined) return read.data;
  if (!('type' in own)) return [...own, ...read.data];
  const values = own.type === 'AND' ? own.values : [own];
  const joined = propertyFiltersSchema.safeParse({ type: 'AND', values: [...values, ...read.data] });
  if (joined.success) return joined.data;
  throw new QueryError(
    'invalid_input',
    `The property filters of this query are already nested ${maxLevels} levels deep, the maximum, so that none can be added.`,
    { attr: overridePath },
  );
}

function invalidFilter({ issues }: z.ZodError): QueryError {
  const [issue] = issues;
  const path = [overridePath, ...(issue?.path ?? [])].join('__');
  return new QueryError(
    'invalid_input',
    `This is not a valid property filter: ${issue?.message ?? 'unknown format'}.`,
    {
      attr: path,
    },
  );
}

import type { Expression } from '../../dialect/ast.ts';
import { filterCondition } from './condition.ts';
import type { FilterTarget } from './filter_target.ts';
import type { PropertyFilter, PropertyFilters, PropertyGroup } from './schema.ts';

/** One property filter of a request. */
export interface FilterItem {
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
    const condition = filterCondition(filter, target, path);
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

import type { Expression } from '../../dialect/ast.ts';
import { filterCondition } from './condition.ts';
import type { FilterTarget } from './filter_target.ts';
import type { PropertyFilter, PropertyFilters, PropertyGroup } from './schema.ts';

/** One property filter of a request. */
export interface FilterItem {
  readonly filter: PropertyFilter;
  /** Where it stands. */
  readonly path: string;
  /** What a refusal of the dialect names: the filter, or its text where it is one. */
  readonly attr: string;
}

/**
 * The filters that the dialect may refuse, wherever in groups they are: conditions of their own, fields of sessions,
 * properties of groups, which a source may lack, and dates where none are stored. Other properties are there in any name.
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

/** The conditions of those filters, each with the path that a refusal of it names. @throws QueryError */
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

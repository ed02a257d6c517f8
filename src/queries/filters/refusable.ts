import type { Expression } from '../../dialect/ast.ts';
import { filterCondition } from './condition.ts';
import type { FilterPlace } from './place.ts';
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
export function refusableFilters(
  filters: PropertyFilters | null | undefined,
  attr: string,
): readonly FilterItem[] {
  if (filters === null || filters === undefined) return [];
  const items = 'type' in filters ? itemsOf(filters.values, `${attr}__values`) : itemsOf(filters, attr);
  return items.filter(({ filter }) => isRefusable(filter));
}

/** The conditions of those filters, each with the path that a refusal of it names. @throws QueryInvalid */
export const refusableConditions = (
  filters: PropertyFilters | null | undefined,
  place: FilterPlace,
): readonly { readonly condition: Expression; readonly attr: string }[] =>
  refusableFilters(filters, place.attr).flatMap(({ filter, path, attr }) => {
    const condition = filterCondition(filter, place, path);
    return condition === null ? [] : [{ condition, attr }];
  });

const itemsOf = (values: PropertyGroup['values'], attr: string): readonly FilterItem[] =>
  values.flatMap((item, index): readonly FilterItem[] => {
    const path = `${attr}__${index}`;
    if ('values' in item) return itemsOf(item.values, `${path}__values`);
    return [{ filter: item, path, attr: item.type === 'hogql' ? `${path}__key` : path }];
  });

const alwaysThere: readonly PropertyFilter['type'][] = [null, undefined, 'event', 'person'];

const isRefusable = ({ type, operator }: PropertyFilter): boolean =>
  !alwaysThere.includes(type) || operator?.startsWith('is_date') === true;

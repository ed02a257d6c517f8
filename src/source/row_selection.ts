import type { RowQuery } from './row_query/row_query.ts';

/** Operators of property filters, the same as in queries. */
export const propertyOperators = [
  'exact',
  'is_not',
  'icontains',
  'not_icontains',
  'regex',
  'not_regex',
  'gt',
  'gte',
  'lt',
  'lte',
  'is_set',
  'is_not_set',
  'is_date_exact',
  'is_date_before',
  'is_date_after',
  'in',
  'not_in',
  'is_cleaned_path_exact',
  'between',
  'not_between',
  'min',
  'max',
] as const;
export type PropertyOperator = (typeof propertyOperators)[number];

/** A value of a filter; null means a missing property. */
export type FilterScalar = string | number | boolean | null;

/** A condition on a property of the event, or of its person. */
export interface PropertyFilter {
  readonly type: 'event' | 'person';
  readonly key: string;
  readonly operator: PropertyOperator;
  readonly value: FilterScalar | readonly FilterScalar[];
}

/** Which rows of an interval are exported, and which columns. All conditions have to hold. */
export interface RowSelection {
  /** Event names; empty selects all. */
  readonly include_events: readonly string[];
  readonly exclude_events: readonly string[];
  readonly filters: readonly PropertyFilter[];
  /** The export's query, which selects columns and can filter rows; without it, the model's columns are exported. */
  readonly query?: RowQuery | null;
}

/** Selects all rows. */
export const allRows: RowSelection = { include_events: [], exclude_events: [], filters: [] };

import type { RowQuery } from './row_query/row_query.ts';

/** What a property filter compares with; the operators of query filters. */
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

/** A scalar of a filter; null stands for a missing property. */
export type FilterScalar = string | number | boolean | null;

/** A condition on a property of the event, or of its person. */
export interface PropertyFilter {
  readonly type: 'event' | 'person';
  readonly key: string;
  readonly operator: PropertyOperator;
  readonly value: FilterScalar | readonly FilterScalar[];
}

/** Which rows of an interval an export takes, and what of them: all conditions have to hold. */
export interface RowSelection {
  /** Names of events; empty for all. */
  readonly include_events: readonly string[];
  readonly exclude_events: readonly string[];
  readonly filters: readonly PropertyFilter[];
  /** The owner's query, which chooses columns and may have a condition more; without, the model's own columns. */
  readonly query?: RowQuery | null;
}

/** Every row. */
export const everyRow: RowSelection = { include_events: [], exclude_events: [], filters: [] };

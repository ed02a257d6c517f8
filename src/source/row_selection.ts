import type { PropertyFilter } from '../filters/schema.ts';
import type { RowQuery } from './row_query/row_query.ts';

/** Which rows of an interval are exported, and which columns. All conditions have to hold. */
export interface RowSelection {
  /** Event names; empty selects all. */
  readonly include_events: readonly string[];
  readonly exclude_events: readonly string[];
  /** Conditions on properties, columns or expressions, as in queries. */
  readonly filters: readonly PropertyFilter[];
  /** The export's query, which selects columns and can filter rows; without it, the model's columns are exported. */
  readonly query?: RowQuery | null;
}

/** Selects all rows. */
export const allRows: RowSelection = { include_events: [], exclude_events: [], filters: [] };

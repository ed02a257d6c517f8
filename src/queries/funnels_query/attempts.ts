import type { Select } from '../../dialect/ast.ts';

/**
 * Attempts of actors to get through the funnel, one row for each event at which an attempt ends. `_t1`, `_t2`, … are
 * the times of its steps, `_depth` is their number, and `_counts` (with exclusions) says whether no exclusion bars it.
 */
export interface Attempts {
  readonly select: Select;
  readonly keys: readonly string[];
  readonly order: readonly string[];
  /** Columns besides keys, order, `_depth`, `_counts` and the times. */
  readonly extraColumns: readonly string[];
}

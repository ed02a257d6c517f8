import type { Select } from '../../dialect/ast.ts';

/**
 * Rows at which a walk has come as far as it can with that event. `_t1`, `_t2`, … say when each step of the attempt was
 * done, `_depth` how many steps it is, `_counts` (where there are exclusions) whether none stands in its way.
 */
export interface Attempts {
  readonly select: Select;
  readonly keys: readonly string[];
  readonly order: readonly string[];
  /** Columns beside keys, order, `_depth`, `_counts` and the times. */
  readonly extraColumns: readonly string[];
}

import type { Column } from '../resolve/relation.ts';
import type { Sql } from '../sql.ts';
import type { CompiledFrom } from './compiled_from.ts';
import type { JoinConditions } from './join_conditions.ts';

/** The side whose rows are kept, the side that is searched for a match, and the join conditions. */
export interface MatchSides {
  readonly kept: CompiledFrom;
  readonly searched: CompiledFrom;
  /** `left` is the kept side. */
  readonly on: JoinConditions;
}

/** The result of a join with at most one match per row. */
export interface SingleMatchRows {
  /** Maps columns of the kept side, if an inner query computes its rows. */
  readonly keptColumn?: (column: Column) => Column;
  readonly searchedColumn: (column: Column) => Column;
  readonly sql: () => Sql;
}

export const unchanged = (column: Column): Column => column;

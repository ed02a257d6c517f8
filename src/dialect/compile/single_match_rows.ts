import type { Column } from '../resolve/relation.ts';
import type { Sql } from '../sql.ts';
import type { CompiledFrom } from './compiled_from.ts';
import type { JoinConditions } from './join_conditions.ts';

/** The side whose rows are kept, the one that is searched for a match of each, and what joins them. */
export interface MatchSides {
  readonly kept: CompiledFrom;
  readonly searched: CompiledFrom;
  /** The kept side is their left. */
  readonly on: JoinConditions;
}

/** What a join makes that takes at most one match of each row. */
export interface SingleMatchRows {
  /** How the columns of the kept side are read, where its rows are made by an inner query. */
  readonly keptColumn?: (column: Column) => Column;
  readonly searchedColumn: (column: Column) => Column;
  readonly sql: () => Sql;
}

export const unchanged = (column: Column): Column => column;

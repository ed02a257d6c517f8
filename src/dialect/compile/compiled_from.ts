import { mappedRelation } from '../resolve/query_relation.ts';
import type { Column, Relation } from '../resolve/relation.ts';
import type { TypedQuery } from '../resolve/value.ts';
import { sql, type Sql } from '../sql.ts';

/** A compiled FROM clause. Read its SQL last, because relations collect the columns that the query uses. */
export interface CompiledFrom {
  readonly relations: readonly Relation[];
  /** USING columns. */
  readonly usingColumns: ReadonlyMap<string, Column>;
  /** What it reads, in the order written. */
  readonly sources: readonly TypedQuery[];
  /** The number of joined tables, including those of inlined subqueries. */
  readonly tableCount: number;
  /** Whether its SQL is a join, which needs parentheses after JOIN. */
  readonly isJoin: boolean;
  readonly sql: () => Sql;
}

/** The names of one side of a join with all columns mapped. */
export function mapColumns(
  { relations, usingColumns }: CompiledFrom,
  map: (column: Column) => Column,
): Pick<CompiledFrom, 'relations' | 'usingColumns'> {
  return {
    relations: relations.map((relation) => mappedRelation(relation, map)),
    usingColumns: new Map([...usingColumns].map(([name, column]) => [name, map(column)])),
  };
}

/** One side of a join, as written after JOIN. */
export const parenthesized = (from: CompiledFrom): Sql => (from.isJoin ? sql`(${from.sql()})` : from.sql());

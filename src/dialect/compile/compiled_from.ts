import { mappedRelation } from '../resolve/query_relation.ts';
import type { Column, Relation } from '../resolve/relation.ts';
import { sql, type Sql } from '../sql.ts';

/** What stands in FROM. Its SQL is asked for last, since relations read what the rest of the query needs of them. */
export interface CompiledFrom {
  readonly relations: readonly Relation[];
  /** Columns of USING. */
  readonly usingColumns: ReadonlyMap<string, Column>;
  /** How many tables are joined, with those of queries in it. */
  readonly tableCount: number;
  /** Whether its SQL is a join, which stands in brackets behind JOIN, rather than one table. */
  readonly isJoin: boolean;
  readonly sql: () => Sql;
}

/** The names of a side of a join, read another way. */
export function mappedNames(
  { relations, usingColumns }: CompiledFrom,
  map: (column: Column) => Column,
): Pick<CompiledFrom, 'relations' | 'usingColumns'> {
  return {
    relations: relations.map((relation) => mappedRelation(relation, map)),
    usingColumns: new Map([...usingColumns].map(([name, column]) => [name, map(column)])),
  };
}

/** A side of a join as it stands behind JOIN. */
export const parenthesized = (from: CompiledFrom): Sql => (from.isJoin ? sql`(${from.sql()})` : from.sql());

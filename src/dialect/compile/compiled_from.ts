import { mappedRelation } from '../resolve/query_relation.ts';
import type { Column, Relation } from '../resolve/relation.ts';
import { sql, type Sql } from '../sql.ts';

/** What stands in FROM. Its SQL is asked for last, since relations read what the rest of the query needs of them. */
export interface CompiledFrom {
  readonly relations: readonly Relation[];
  /** Columns of USING. */
  readonly merged: ReadonlyMap<string, Column>;
  /** How many tables are joined, with those of queries in it. */
  readonly tables: number;
  /** Whether its SQL is a join, which stands in brackets behind JOIN, rather than one table. */
  readonly isJoin: boolean;
  readonly sql: () => Sql;
}

/** The names of a side of a join, read another way. */
export function mappedNames(
  { relations, merged }: CompiledFrom,
  map: (column: Column) => Column,
): Pick<CompiledFrom, 'relations' | 'merged'> {
  return {
    relations: relations.map((relation) => mappedRelation(relation, map)),
    merged: new Map([...merged].map(([name, column]) => [name, map(column)])),
  };
}

/** A side of a join as it stands behind JOIN. */
export const bracketed = (from: CompiledFrom): Sql => (from.isJoin ? sql`(${from.sql()})` : from.sql());

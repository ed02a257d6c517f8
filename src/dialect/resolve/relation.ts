import type { Sql } from '../sql.ts';
import type { PropertyTypes } from '../schema.ts';
import type { Type } from '../types.ts';

/** What a name of a relation stands for. */
export type Member = Column | Nested | Refused;

/** A column. */
export interface Column {
  readonly kind: 'column';
  readonly sql: Sql;
  readonly type: Type;
  /** Types of what a JSON column holds. */
  readonly properties?: PropertyTypes;
}

/** A row of another relation, such as `person`. */
export interface Nested {
  readonly kind: 'nested';
  readonly members: Members;
}

/** A name that is known and cannot be used. */
export interface Refused {
  readonly kind: 'refused';
  readonly sentence: string;
  readonly suggestion: string | null;
}

/** What can be asked of a row. Asking for a column makes the relation read it. */
export interface Members {
  readonly member: (name: string) => Member | undefined;
  /** All names, for suggestions. */
  readonly names: () => readonly string[];
}

/** Something that stands in FROM. */
export interface Relation extends Members {
  /** What the query calls it; null for a query without a name. */
  readonly name: string | null;
  /** What `*` stands for. */
  readonly star: () => readonly string[];
  /** Its SQL, once all names have been asked for: it reads those columns and no others. */
  readonly from: () => Sql;
}

export const column = (sql: Sql, type: Type, properties?: PropertyTypes): Column => ({
  kind: 'column',
  sql,
  type,
  ...(properties === undefined ? {} : { properties }),
});

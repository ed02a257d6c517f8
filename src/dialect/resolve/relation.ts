import type { Sql } from '../sql.ts';
import type { PropertyTypes } from '../schema.ts';
import type { Type } from '../types.ts';

/** What a name of a relation stands for. */
export type RelationField = Column | NestedRow | UnsupportedField;

/** A column. */
export interface Column {
  readonly kind: 'column';
  readonly sql: Sql;
  readonly type: Type;
  /** Types of what a JSON column holds. */
  readonly properties?: PropertyTypes;
}

/** A row of another relation, such as `person`. */
export interface NestedRow {
  readonly kind: 'nested';
  readonly fields: RelationFields;
}

/** A name that is known and cannot be used. */
export interface UnsupportedField {
  readonly kind: 'unsupported';
  readonly summary: string;
  readonly suggestion: string | null;
}

/** What can be asked of a row. Asking for a column makes the relation read it. */
export interface RelationFields {
  readonly field: (name: string) => RelationField | undefined;
  /** All names, for suggestions. */
  readonly names: () => readonly string[];
  /** What `*` stands for. */
  readonly star: () => readonly string[];
}

/**
 * A way in which conditions on a relation's rows tell which rows have to be read for it, so that what is gathered from
 * many rows, as sessions are, is gathered for those alone that can appear.
 */
export interface PushdownTarget {
  /** Conditions are worth something when this column is among those that they read. */
  readonly column: Sql;
  /** They may read these as well. */
  readonly otherColumns: readonly Sql[];
  /** Takes note of conditions on these columns that all rows fulfil. */
  readonly pushDown: (conditions: readonly Sql[]) => void;
}

/** Something that stands in FROM. */
export interface Relation extends RelationFields {
  /** What the query calls it; null for a query without a name. */
  readonly name: string | null;
  /** Its SQL, once all names have been asked for: it reads those columns and no others. */
  readonly from: () => Sql;
  /** The number of a row, where the rows have an order: arrays of values are put together in it. */
  readonly ordinal?: () => Sql;
  /** Asked for when all names have been asked for. */
  readonly pushdownTargets?: () => readonly PushdownTarget[];
}

export const column = (sql: Sql, type: Type, properties?: PropertyTypes): Column => ({
  kind: 'column',
  sql,
  type,
  ...(properties === undefined ? {} : { properties }),
});

import type { Sql } from '../sql.ts';
import type { PropertyTypes } from '../schema.ts';
import type { Type } from '../types.ts';

/** What a name in a relation refers to. */
export type RelationField = Column | NestedRow | UnsupportedField;

export interface Column {
  readonly kind: 'column';
  /** Equal for equal columns, whatever their SQL. A relation in FROM gives it; see `identifiedRelation`. */
  readonly identity?: string;
  readonly sql: Sql;
  readonly type: Type;
  /** Declared types of the properties in a JSON column. */
  readonly properties?: PropertyTypes;
}

/** A nested row of another relation, such as `person`. */
export interface NestedRow {
  readonly kind: 'nested';
  readonly fields: RelationFields;
}

/** A known field that is not supported. */
export interface UnsupportedField {
  readonly kind: 'unsupported';
  readonly summary: string;
  readonly suggestion: string | null;
}

/** The fields of a row. Reading a field makes the relation select its column. */
export interface RelationFields {
  readonly field: (name: string) => RelationField | undefined;
  /** All names, for suggestions. */
  readonly names: () => readonly string[];
  /** The fields of `*`. */
  readonly star: () => readonly string[];
}

/**
 * A target of predicate pushdown. Conditions on a relation's rows can restrict which rows are read for an
 * aggregation inside it, such as sessions, to those that can appear in the result.
 */
export interface PushdownTarget {
  /** Conditions are pushed down only if at least one of them reads this column. */
  readonly column: Sql;
  /** Columns that the conditions may read as well. */
  readonly otherColumns: readonly Sql[];
  /** Adds conditions on these columns that hold for all rows of the query. */
  readonly pushDown: (conditions: readonly Sql[]) => void;
}

/** A column that no index has, although the relation finds its rows by other indexes. */
export interface LookupTarget {
  readonly column: Sql;
  /** Restricts the rows to those that can have one of these values in the column. It may keep others. */
  readonly restrictTo: (values: readonly Sql[]) => void;
}

/** A relation in FROM. */
export interface Relation extends RelationFields {
  /** Its name in the query; null for an unnamed subquery. */
  readonly name: string | null;
  /** Its SQL. Call it after all fields are resolved: it reads only the columns used. */
  readonly from: () => Sql;
  /** The position of a row, if the rows have an order. Array aggregates preserve that order. */
  readonly ordinal?: () => Sql;
  /** Call it after all fields are resolved. */
  readonly pushdownTargets?: () => readonly PushdownTarget[];
  /** Call it after all fields are resolved. */
  readonly lookupTargets?: () => readonly LookupTarget[];
}

/** @throws Error for a column that no relation in FROM has identified */
export function columnIdentity({ identity }: Column): string {
  if (identity === undefined) throw new Error('A column without an identity.');
  return identity;
}

export const column = (sql: Sql, type: Type, properties?: PropertyTypes): Column => ({
  kind: 'column',
  sql,
  type,
  ...(properties === undefined ? {} : { properties }),
});

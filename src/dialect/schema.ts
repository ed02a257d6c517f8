import {
  arrayOf,
  type Property,
  type PropertyScope,
  type ScalarKind,
  scalarType,
  type Type,
} from './types.ts';

/** A relation of the source database: a table or a view. */
export interface SourceRelation {
  /** Qualified name, quoted for SQL. */
  readonly relation: string;
  /** Columns by name, with their PostgreSQL types. */
  readonly columns: ReadonlyMap<string, string>;
  /** The columns of each unique index; a view has none. Undefined: one row per key is assumed. */
  readonly uniqueKeys?: readonly (readonly string[])[];
}

/** A relation that a project registered as a warehouse table. */
export interface WarehouseTable extends SourceRelation {
  /** The column with the team id; null if all rows belong to the project. */
  readonly teamColumn: string | null;
}

/** The relations that queries of one project may read. Null relations do not exist in the source. */
export interface Schema {
  readonly events: SourceRelation;
  readonly persons: SourceRelation;
  readonly personDistinctIds: SourceRelation;
  readonly sessionReplayEvents: SourceRelation | null;
  readonly groups: SourceRelation | null;
  readonly cohortPeople: SourceRelation | null;
  /** By the name used in queries, which may contain dots. */
  readonly warehouse: ReadonlyMap<string, WarehouseTable>;
  /** Declared types of properties. Others are strings, except where `inference` says more. */
  readonly properties: ReadonlyMap<PropertyScope, PropertyTypes>;
  /** Absent where a query must not depend on inferred types. */
  readonly inference?: TypeInference;
}

/** The types that a property may have; `string` is its text. */
export type PropertyType = 'string' | ConvertedType;
export type ConvertedType = 'numeric' | 'boolean' | 'datetime';

type PropertyTypes = ReadonlyMap<string, PropertyType>;

/** The types of undeclared properties, for queries that reject their text. */
export interface TypeInference {
  /** The type that the whole query reads a property as; undefined for its text. */
  typeOf(property: Property): ConvertedType | undefined;
  /**
   * Called where the text of a property is rejected.
   * @returns whether its type can be found out. The compilation then continues, so that it finds other properties, but its
   * statement must not be used: it has null in place of the property.
   */
  request(property: Property): boolean;
}

/** The dialect type of a PostgreSQL column. Unknown types are read as strings. */
export function typeOfColumn(postgresType: string, nullable: boolean): Type {
  const base = postgresType.replace(/\(.*?\)/, '').toLowerCase();
  if (base.endsWith('[]')) {
    const item = kindByPostgresType[base.slice(0, -2)];
    if (item !== undefined && arrayItemKinds.has(item))
      return { ...arrayOf(scalarType(item, true)), nullable };
  }
  return scalarType(kindByPostgresType[base] ?? 'string', nullable);
}

const kindByPostgresType: Readonly<Record<string, ScalarKind>> = {
  smallint: 'integer',
  integer: 'integer',
  bigint: 'integer',
  real: 'float',
  'double precision': 'float',
  numeric: 'decimal',
  boolean: 'boolean',
  date: 'date',
  'timestamp with time zone': 'datetime',
  'timestamp without time zone': 'datetime',
  uuid: 'uuid',
  interval: 'interval',
  json: 'json',
  jsonb: 'json',
  text: 'string',
  'character varying': 'string',
};

/** Item kinds whose JSON form equals the dialect's array items. */
const arrayItemKinds: ReadonlySet<ScalarKind> = new Set([
  'string',
  'integer',
  'float',
  'decimal',
  'boolean',
  'uuid',
]);

import { arrayOf, scalar, type ScalarKind, type Type } from './types.ts';

/** A relation of the source database: a table, or a view over what a user has. */
export interface SourceRelation {
  /** Its name, quoted for SQL. */
  readonly relation: string;
  /** Columns and their types as PostgreSQL names them. */
  readonly columns: ReadonlyMap<string, string>;
}

/** A relation that a project registered as a table of its own. */
export interface WarehouseTable extends SourceRelation {
  /** The column that holds the team; null where all rows are the project's. */
  readonly teamColumn: string | null;
}

/** What queries of one project may read. Relations that are null are refused by name. */
export interface Schema {
  readonly events: SourceRelation;
  readonly persons: SourceRelation;
  readonly personDistinctIds: SourceRelation;
  readonly sessionReplayEvents: SourceRelation | null;
  readonly groups: SourceRelation | null;
  /** By the name that queries use, which may have dots. */
  readonly warehouse: ReadonlyMap<string, WarehouseTable>;
  /** Known types of properties; one without a definition is text. */
  readonly eventProperties: PropertyTypes;
  readonly personProperties: PropertyTypes;
}

export type PropertyTypes = ReadonlyMap<string, 'numeric' | 'boolean' | 'datetime'>;

/** The dialect's type of a column of PostgreSQL; what has none is read as its text. */
export function typeOfColumn(postgresType: string, nullable: boolean): Type {
  const base = postgresType.replace(/\(.*?\)/, '').toLowerCase();
  if (base.endsWith('[]')) {
    const item = kindByPostgresType[base.slice(0, -2)];
    if (item !== undefined && arrayItemKinds.has(item)) return { ...arrayOf(scalar(item, true)), nullable };
  }
  return scalar(kindByPostgresType[base] ?? 'string', nullable);
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

/** Kinds whose JSON is what an array of the dialect holds. */
const arrayItemKinds: ReadonlySet<ScalarKind> = new Set([
  'string',
  'integer',
  'float',
  'decimal',
  'boolean',
  'uuid',
]);

import type pg from 'pg';
import type { PropertyTypes, Schema, SourceRelation, WarehouseTable } from '../dialect/schema.ts';
import { columnTypesOfExisting, requireColumns, type Relations } from '../source/relations.ts';
import type { PropertyScope } from './property_definitions.ts';
import type { QueryProject } from './query_kind.ts';

/** Relations that a source may lack. */
export const optionalRelations = {
  sessionReplayEvents: '"public"."session_replay_events"',
  groups: '"public"."groups"',
} as const;

/** Many databases have a relation named groups. One that lacks any of these columns is something else. */
const groupColumns = [
  ...['team_id', 'group_type_index', 'group_key'],
  ...['group_properties', 'created_at', 'updated_at'],
];

type Connection = Pick<pg.ClientBase, 'query'>;

/** The tables and property types that a project defines. */
export type ProjectTables = Pick<QueryProject, 'warehouse_tables' | 'property_definitions'>;

/**
 * The schema for the queries of a project: the configured relations and those that it registered, with their current
 * columns.
 * @throws RelationNotFound
 */
export async function readSourceSchema(
  connection: Connection,
  relations: Relations,
  { warehouse_tables, property_definitions }: ProjectTables,
): Promise<Schema> {
  const present = await columnTypesOfExisting(connection, [
    ...[relations.events, relations.persons, relations.person_distinct_ids],
    ...Object.values(optionalRelations),
  ]);
  const required = (relation: string): SourceRelation => ({
    relation,
    columns: requireColumns(present, relation),
  });
  const optional = (relation: string): SourceRelation | null =>
    present.has(relation) ? required(relation) : null;
  const groups = optional(optionalRelations.groups);
  const propertyTypes = (owner: PropertyScope): PropertyTypes =>
    new Map(
      property_definitions.filter(({ scope }) => scope === owner).map(({ name, type }) => [name, type]),
    );
  return {
    events: required(relations.events),
    persons: required(relations.persons),
    personDistinctIds: required(relations.person_distinct_ids),
    sessionReplayEvents: optional(optionalRelations.sessionReplayEvents),
    groups: groupColumns.every((name) => groups?.columns.has(name)) ? groups : null,
    warehouse: await readWarehouse(connection, warehouse_tables),
    eventProperties: propertyTypes('event'),
    personProperties: propertyTypes('person'),
  };
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * Reads the registered tables. A relation that is gone or unreadable has no columns, so that only queries that read it
 * fail.
 */
async function readWarehouse(
  connection: Connection,
  tables: QueryProject['warehouse_tables'],
): Promise<ReadonlyMap<string, WarehouseTable>> {
  const columns = new Map(tables.map(({ name }) => [name, new Map<string, string>()]));
  if (tables.length > 0) {
    const { rows } = await connection.query<{ table: string; name: string; type: string }>(
      `select registered.name as table, attname::text as name,
         format_type(case typtype when 'd' then typbasetype else type.oid end, null) as type
       from unnest($1::text[], $2::text[], $3::text[]) as registered (name, relation_schema, relation_name)
       join pg_catalog.pg_namespace as namespace on nspname = relation_schema
       join pg_catalog.pg_class as relation on relnamespace = namespace.oid and relname = relation_name
       join pg_catalog.pg_attribute as attribute on attrelid = relation.oid and attnum > 0 and not attisdropped
       join pg_catalog.pg_type as type on type.oid = atttypid
       where has_schema_privilege(namespace.oid, 'usage') and has_column_privilege(relation.oid, attnum, 'select')
       order by registered.name, attnum`,
      [
        tables.map(({ name }) => name),
        tables.map(({ relation_schema }) => relation_schema),
        tables.map(({ relation_name }) => relation_name),
      ],
    );
    for (const { table, name, type } of rows) columns.get(table)?.set(name, type);
  }
  return new Map(
    tables.map(({ name, relation_schema, relation_name, team_column }) => [
      name,
      {
        relation: `${quoted(relation_schema)}.${quoted(relation_name)}`,
        columns: columns.get(name) ?? new Map<string, string>(),
        teamColumn: team_column,
      },
    ]),
  );
}

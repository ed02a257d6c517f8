import type { SourceRelation, WarehouseTable } from '@exportd/dialect/schema';
import {
  type CatalogConnection,
  columnTypesOfExisting,
  RelationNotFound,
  type Relations,
  type UniqueKeys,
  uniqueKeysOf,
} from '../source/relations.ts';
import { sourceContract, type RelationRole } from '../source/contract.ts';
import { withContractTypes } from '../source/contract_types.ts';
import { propertyScopes } from './property_definitions.ts';
import type { QueryProject } from './query_kind.ts';
import { querySchema } from './query_role/query_role.ts';
import type { Substitute, WarehouseSchema } from './warehouse.ts';

/** Relations that a source may lack. */
export const optionalRelations = {
  sessionReplayEvents: '"public"."session_replay_events"',
  groups: '"public"."groups"',
  cohortPeople: '"public"."cohort_people"',
} as const;

/** Many databases have a relation named groups. One that lacks any of these columns is something else. */
const groupColumns = [
  'team_id',
  'group_type_index',
  'group_key',
  'group_properties',
  'created_at',
  'updated_at',
];
const cohortColumns = ['team_id', 'cohort_id', 'person_id'];

/** The relations that queries read. */
export interface QueryRelations extends Relations {
  /** Whether queries run under a role of their own, which cannot read the catalog. */
  readonly hasQueryRole: boolean;
}

/** The tables and property types that a project defines. */
type ProjectTables = Pick<QueryProject, 'warehouse_tables' | 'property_definitions'>;

/**
 * The schema for the queries of a project: the configured relations and those that it registered, with their current
 * columns.
 * @throws RelationNotFound
 */
export async function readSourceSchema(
  connection: CatalogConnection,
  relations: QueryRelations,
  { warehouse_tables, property_definitions }: ProjectTables,
): Promise<WarehouseSchema> {
  const names = [
    relations.events,
    relations.persons,
    relations.person_distinct_ids,
    ...Object.values(optionalRelations),
  ];
  const present = relations.hasQueryRole
    ? await readableRelations(connection, [...names, ...warehouse_tables.map(quotedName)])
    : await existingRelations(connection, names);
  const required = (name: string, role: RelationRole): SourceRelation =>
    withContractTypes(present.get(name) ?? missingRelation(name), role);
  const optional = (name: string): SourceRelation | null => present.get(name) ?? null;
  const complete = (name: string, columns: readonly string[]): SourceRelation | null => {
    const found = optional(name);
    return columns.every((column) => found?.columns.has(column)) ? found : null;
  };
  // A source of events alone. One of both missing is a wrong setting.
  const hasPersons = present.has(relations.persons) || present.has(relations.person_distinct_ids);
  const events = required(relations.events, 'events');
  return {
    events: hasPersons ? events : withPersonOfDistinctId(events),
    persons: hasPersons ? required(relations.persons, 'persons') : withoutRows('persons', ['team_id', 'id']),
    personDistinctIds: hasPersons
      ? required(relations.person_distinct_ids, 'person_distinct_ids')
      : withoutRows('person_distinct_ids', ['team_id', 'distinct_id']),
    sessionReplayEvents: optional(optionalRelations.sessionReplayEvents),
    groups: complete(optionalRelations.groups, groupColumns),
    cohortPeople: complete(optionalRelations.cohortPeople, cohortColumns),
    warehouse: relations.hasQueryRole
      ? warehouseOf(warehouse_tables, (table) => present.get(quotedName(table)))
      : await readWarehouse(connection, warehouse_tables),
    properties: new Map(
      propertyScopes.map((owner) => {
        const defined = property_definitions.filter(({ scope }) => scope === owner);
        return [owner, new Map(defined.map(({ name, type }) => [name, type]))];
      }),
    ),
    substitute: hasPersons ? null : personOfDistinctId,
  };
}

/** The person of an event in a source without persons: the one that the event names, else its distinct id. */
const personOfDistinctId: Substitute = {
  sql: `coalesce("person_id"::uuid, md5("team_id"::text || ' ' || "distinct_id"::text)::uuid) as "person_id"`,
  column: 'person_id',
  notice:
    'The source has no relation of persons, so that each distinct id counts as a person, unless its event names one.',
};

/** Events whose distinct ids are persons, where nothing says which persons there are. */
function withPersonOfDistinctId(events: SourceRelation): SourceRelation {
  const selected = [...events.columns.keys()].map((name) =>
    name === personOfDistinctId.column ? personOfDistinctId.sql : quoted(name),
  );
  return {
    ...events,
    relation: `(select ${selected.join(', ')} from ${events.relation}) as "events_without_persons"`,
    columns: new Map(events.columns).set(personOfDistinctId.column, 'uuid'),
  };
}

/** A relation of the contract without rows, with a unique key. */
function withoutRows(role: RelationRole, key: readonly string[]): SourceRelation {
  const { columns } = sourceContract[role];
  const selected = columns.map(({ name, type }) => `null::${type} as "${name}"`);
  return {
    relation: `(select ${selected.join(', ')} where false) as "no_${role}"`,
    columns: new Map(columns.map(({ name, type }) => [name, type])),
    uniqueKeys: [key],
  };
}

type RegisteredTable = QueryProject['warehouse_tables'][number];

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const quotedName = ({ relation_schema, relation_name }: RegisteredTable): string =>
  `${quoted(relation_schema)}.${quoted(relation_name)}`;

const missingRelation = (name: string): never => {
  throw new RelationNotFound(
    `Relation ${name} does not exist in the source, or queries may not read it. "exportd doctor" says which.`,
  );
};

/** Reads the columns of relations as the role of queries, which asks `exportd_query` instead of the catalog. */
async function readableRelations(
  connection: CatalogConnection,
  names: readonly string[],
): Promise<ReadonlyMap<string, SourceRelation>> {
  const { rows } = await connection.query(
    `select name, relation, columns, unique_keys from ${querySchema}.readable($1)`,
    [names],
  );
  const found = rows as readonly {
    name: string;
    relation: string;
    columns: [name: string, type: string][];
    unique_keys: UniqueKeys;
  }[];
  return new Map(
    found.map(({ name, relation, columns, unique_keys }) => [
      name,
      { relation, columns: new Map(columns), uniqueKeys: unique_keys },
    ]),
  );
}

async function existingRelations(
  connection: CatalogConnection,
  names: readonly string[],
): Promise<ReadonlyMap<string, SourceRelation>> {
  const present = await columnTypesOfExisting(connection, names);
  const keys = await uniqueKeysOf(connection, [...present.keys()]);
  return new Map(
    [...present].map(([relation, columns]) => [
      relation,
      { relation, columns, uniqueKeys: keys.get(relation) ?? [] },
    ]),
  );
}

/** The registered tables. One that is gone or unreadable has no columns, so that only queries that read it fail. */
const warehouseOf = (
  tables: QueryProject['warehouse_tables'],
  find: (table: RegisteredTable) => SourceRelation | undefined,
): ReadonlyMap<string, WarehouseTable> =>
  new Map(
    tables.map((table) => {
      const { relation = quotedName(table), columns = new Map<string, string>() } = find(table) ?? {};
      return [table.name, { relation, columns, teamColumn: table.team_column }];
    }),
  );

/** Reads the columns of the registered tables from the catalog. */
async function readWarehouse(
  connection: CatalogConnection,
  tables: QueryProject['warehouse_tables'],
): Promise<ReadonlyMap<string, WarehouseTable>> {
  const columns = new Map(tables.map(({ name }) => [name, new Map<string, string>()]));
  if (tables.length > 0) {
    const { rows } = await connection.query(
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
    for (const { table, name, type } of rows as readonly { table: string; name: string; type: string }[])
      columns.get(table)?.set(name, type);
  }
  return warehouseOf(tables, (table) => ({
    relation: quotedName(table),
    columns: columns.get(table.name) ?? new Map<string, string>(),
  }));
}

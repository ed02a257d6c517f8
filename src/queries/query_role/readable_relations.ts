import type pg from 'pg';
import type { Relations } from '../../source/relations.ts';
import { optionalRelations } from '../source_schema.ts';
import type { WarehouseTable } from '../warehouse_tables.ts';
import { policyNames } from './policy_names.ts';

/** A relation of the source that the role of queries may read, and which rows belong to which project. */
export interface ReadableRelation {
  /** As exportd's settings name it, quoted. */
  readonly name: string;
  /** Its full name, quoted for SQL. */
  readonly quoted: string;
  /** Whether it is an ordinary or partitioned table, which can have row security. */
  readonly isTable: boolean;
  /** Whether the operator uses row security on it. Policies of others are left alone. */
  readonly hasRowSecurity: boolean;
  /** The columns with the project id, and the projects that may read by them; null for all. */
  readonly teamColumns: readonly { readonly column: string; readonly projects: readonly number[] | null }[];
  /** The project that all rows belong to, where no column says so. */
  readonly soleProject: number | null;
}

type RegisteredTable = Pick<WarehouseTable, 'team_id' | 'relation_schema' | 'relation_name' | 'team_column'>;
type Access = Pick<ReadableRelation, 'teamColumns' | 'soleProject'>;

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const allProjects: Access = { teamColumns: [{ column: 'team_id', projects: null }], soleProject: null };

/** How projects read a relation that they registered. Without a team column, only one project can. */
function accessOf(tables: readonly RegisteredTable[]): Access {
  const [first] = tables;
  if (first?.team_column === null) return { teamColumns: [], soleProject: first.team_id };
  const columns = [...new Set(tables.map(({ team_column }) => team_column ?? ''))];
  const teamColumns = columns.map((column) => ({
    column,
    projects:
      columns.length === 1
        ? null
        : tables.filter(({ team_column }) => team_column === column).map(({ team_id }) => team_id),
  }));
  return { teamColumns, soleProject: null };
}

/**
 * Finds the relations that queries read: those of the settings and those that projects registered. Optional relations
 * and registered ones that do not exist are left out.
 */
export async function findReadableRelations(
  source: Pick<pg.ClientBase, 'query'>,
  relations: Relations,
  warehouseTables: readonly RegisteredTable[],
): Promise<readonly ReadableRelation[]> {
  const { events, persons, person_distinct_ids } = relations;
  const wanted = new Map<string, Access>(
    [events, persons, person_distinct_ids, ...Object.values(optionalRelations)].map((name) => [
      name,
      allProjects,
    ]),
  );
  const registered = Map.groupBy(warehouseTables, ({ relation_schema, relation_name }) =>
    [relation_schema, relation_name].map(quote).join('.'),
  );
  // A relation of the settings has a team column, also for a project that registered it.
  for (const [name, tables] of registered) if (!wanted.has(name)) wanted.set(name, accessOf(tables));
  const { rows } = await source.query<
    Pick<ReadableRelation, 'name' | 'quoted' | 'isTable' | 'hasRowSecurity'> & { columns: string[] }
  >(
    `select name, format('%I.%I', nspname, relname) as quoted, relkind in ('r', 'p') as "isTable",
       relrowsecurity and not exists (
         select from pg_catalog.pg_policy where polrelid = class.oid and polname = $2
       ) as "hasRowSecurity",
       array(select attname::text from pg_catalog.pg_attribute where attrelid = class.oid and not attisdropped) as columns
     from unnest($1::text[]) as name
     join pg_catalog.pg_class as class on class.oid = to_regclass(name)
     join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace
     where relkind in ('r', 'p', 'v', 'm', 'f')`,
    [[...wanted.keys()], policyNames.others],
  );
  return rows.flatMap(({ columns, ...found }) => {
    const access = wanted.get(found.name) ?? allProjects;
    // Many databases have a relation named groups that is something else; a registered column may be gone.
    return access.teamColumns.every(({ column }) => columns.includes(column))
      ? [{ ...found, ...access }]
      : [];
  });
}

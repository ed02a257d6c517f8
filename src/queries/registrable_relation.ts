import type pg from 'pg';
import { isDialectTable } from '@exportd/dialect/resolve/tables/persons';
import { quoteRelation, type Relations } from '../source/relations.ts';
import { optionalRelations } from './source_schema.ts';
import { InvalidWarehouseTable, type RegistrableRelation } from './warehouse_tables.ts';

/** A request to register a warehouse table. */
export interface WarehouseRequest {
  /** The name in queries. */
  readonly name: string;
  /** The name in SQL. */
  readonly relation: string;
  readonly team_column: string | null;
}

const tableName = /^[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*){0,4}$/;
const maxNameLength = 200;
const teamColumnTypes: ReadonlySet<string> = new Set(['smallint', 'integer', 'bigint']);

/** Checks the name. @throws InvalidWarehouseTable if queries cannot use the name or already use it for another table */
function checkTableName(name: string): void {
  if (!tableName.test(name) || name.length > maxNameLength)
    throw new InvalidWarehouseTable(
      `"${name}" is not a valid table name: expected letters, digits and _, in up to five parts joined by dots, such as stripe.charges.`,
    );
  const [first = name] = name.split('.');
  if (isDialectTable(first))
    throw new InvalidWarehouseTable(`"${first}" is a built-in table of queries. Choose another name.`);
}

/**
 * Checks that queries may read a relation: that it exists in the source and that exportd has the permissions.
 * @throws InvalidWarehouseTable, InvalidRelationName
 */
export async function findRegistrableRelation(
  source: Pick<pg.Pool, 'query'>,
  relations: Relations,
  request: WarehouseRequest,
): Promise<RegistrableRelation> {
  checkTableName(request.name);
  const quoted = quoteRelation(request.relation);
  const found = await findRelation(source, quoted, [
    relations.events,
    relations.persons,
    relations.person_distinct_ids,
    ...Object.values(optionalRelations),
  ]);
  const { schema, name, is_own, columns } = found;
  const full = `${schema}.${name}`;
  if (/^(pg_.*|information_schema)$/.test(schema))
    throw new InvalidWarehouseTable(`${full} is a system table of PostgreSQL. Queries may not read it.`);
  if (schema === 'exportd')
    throw new InvalidWarehouseTable(`${full} belongs to exportd. Queries may not read it.`);
  const { team_column } = request;
  if (team_column === null) {
    if (is_own)
      throw new InvalidWarehouseTable(
        `${full} contains the rows of all projects. Name the column with the project id with --team-column.`,
      );
    return { schema, name, team_column };
  }
  const type = columns[team_column];
  if (type === undefined)
    throw new InvalidWarehouseTable(`${full} has no column "${team_column}", or exportd lacks SELECT on it.`);
  if (!teamColumnTypes.has(type))
    throw new InvalidWarehouseTable(
      `Column "${team_column}" of ${full} cannot contain project ids: its type is ${type}, expected an integer.`,
    );
  return { schema, name, team_column };
}

interface FoundRelation {
  readonly schema: string;
  readonly name: string;
  /** Whether exportd itself reads it, or a table that it is a partition of. */
  readonly is_own: boolean;
  /** Types of the readable columns. */
  readonly columns: Readonly<Record<string, string>>;
}

const insufficientPrivilege = '42501';

async function findRelation(
  source: Pick<pg.Pool, 'query'>,
  relation: string,
  own: readonly string[],
): Promise<FoundRelation> {
  const found = await source
    .query<FoundRelation>(
      `select nspname::text as schema, relname::text as name,
         coalesce(pg_partition_root(relation.oid)::oid, relation.oid) = any (
           select to_regclass(own)::oid from unnest($2::text[]) as own) as is_own,
         (select coalesce(json_object_agg(attname, format_type(atttypid, null)), '{}') from pg_catalog.pg_attribute
          where attrelid = relation.oid and attnum > 0 and not attisdropped
            and has_column_privilege(relation.oid, attnum, 'select')) as columns
       from pg_catalog.pg_class as relation join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace
       where relation.oid = to_regclass($1) and relkind = any ('{r,p,v,m,f}')`,
      [relation, own],
    )
    .catch((error: unknown) => {
      // Without USAGE on the schema, PostgreSQL does not even say whether the relation exists.
      if ((error as { code?: unknown }).code === insufficientPrivilege) return { rows: [] };
      throw error;
    });
  const [one] = found.rows;
  if (!one)
    throw new InvalidWarehouseTable(
      `The source has no relation ${relation}, or exportd lacks permission to see it.`,
    );
  if (Object.keys(one.columns).length === 0)
    throw new InvalidWarehouseTable(
      `exportd may not read ${relation}. Grant SELECT on it to exportd's role.`,
    );
  return one;
}

import type pg from 'pg';
import { isDialectTable } from '../dialect/resolve/tables/names.ts';
import { quoteRelation, type Relations } from '../source/relations.ts';
import { optionalRelations } from './source_schema.ts';
import { InvalidWarehouseTable } from './invalid_warehouse_table.ts';
import type { RegistrableRelation } from './warehouse_tables.ts';

/** What a project asks for. */
export interface WarehouseRequest {
  /** As queries are to call it. */
  readonly name: string;
  /** As SQL names it. */
  readonly relation: string;
  readonly team_column: string | null;
}

const tableName = /^[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*){0,4}$/;
const maxNameLength = 200;
const teamColumnTypes: ReadonlySet<string> = new Set(['smallint', 'integer', 'bigint']);

/** @throws InvalidWarehouseTable for a name that queries cannot use or that means something else to them. */
function checkTableName(name: string): void {
  if (!tableName.test(name) || name.length > maxNameLength)
    throw new InvalidWarehouseTable(
      `"${name}" is no name for a table: expected letters, digits and _, up to five parts joined by dots, such as stripe.charges.`,
    );
  const [first = name] = name.split('.');
  if (isDialectTable(first))
    throw new InvalidWarehouseTable(`"${first}" is a table of queries already; choose another name.`);
}

/**
 * Looks whether queries may read a relation, in the source and with the rights that exportd has there.
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
    throw new InvalidWarehouseTable(`${full} belongs to the database itself; queries may not read it.`);
  if (schema === 'exportd')
    throw new InvalidWarehouseTable(`${full} is exportd's own; queries may not read it.`);
  const { team_column } = request;
  if (team_column === null) {
    if (is_own)
      throw new InvalidWarehouseTable(
        `${full} holds the rows of all projects; name the column of their ids with --team-column.`,
      );
    return { schema, name, team_column };
  }
  const type = columns[team_column];
  if (type === undefined)
    throw new InvalidWarehouseTable(`${full} has no column "${team_column}", or exportd may not read it.`);
  if (!teamColumnTypes.has(type))
    throw new InvalidWarehouseTable(
      `The column "${team_column}" of ${full} cannot hold ids of projects: it is of the type ${type}.`,
    );
  return { schema, name, team_column };
}

interface FoundRelation {
  readonly schema: string;
  readonly name: string;
  /** Whether it is a relation that exportd reads itself, or a partition of one. */
  readonly is_own: boolean;
  /** Types of the columns that may be read. */
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
      // Of a schema that may not be used PostgreSQL does not even say whether it has the relation.
      if ((error as { code?: unknown }).code === insufficientPrivilege) return { rows: [] };
      throw error;
    });
  const [one] = found.rows;
  if (!one)
    throw new InvalidWarehouseTable(`The source has no relation ${relation}, or exportd may not see it.`);
  if (Object.keys(one.columns).length === 0)
    throw new InvalidWarehouseTable(
      `exportd may not read ${relation}: grant SELECT on it to exportd's role.`,
    );
  return one;
}

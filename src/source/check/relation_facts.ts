import pg from 'pg';
import type { ReadCatalog } from './report.ts';

/** A column as the catalog describes it. */
export interface FoundColumn {
  readonly name: string;
  /** The base type of a domain. */
  readonly type: string;
  readonly not_null: boolean;
  readonly readable: boolean;
}

/** A relation of the source as the catalog describes it. */
export interface RelationFacts {
  /** The quoted name with its schema. */
  readonly name: string;
  readonly schema: string;
  readonly kind: 'table' | 'partitioned table' | 'view' | 'materialized view' | 'foreign table';
  /** Whether policies hide rows from exportd's role. Those of `exportd query setup` show it all of them. */
  readonly row_security: boolean;
  /** Whether exportd's role owns it. Otherwise the owner creates views over it, and grants their rows. */
  readonly owned: boolean;
  readonly columns: readonly FoundColumn[];
}

/** Why a relation cannot be described. */
export type Unreadable = 'missing' | 'forbidden';

const insufficientPrivilege = '42501';

/** Describes a relation. A schema that the role may not use is `forbidden`. */
export async function readRelationFacts(
  read: ReadCatalog,
  relation: string,
): Promise<RelationFacts | Unreadable> {
  try {
    const [found] = await read<RelationFacts>(
      `select format('%I.%I', nspname, relname) as name, quote_ident(nspname) as schema,
         case relkind when 'r' then 'table' when 'p' then 'partitioned table' when 'v' then 'view'
           when 'm' then 'materialized view' else 'foreign table' end as kind,
         row_security_active(relation.oid) and not coalesce(
           (select bool_or(polpermissive and pg_get_expr(polqual, polrelid) = 'true') and bool_and(polpermissive)
            from pg_catalog.pg_policy where polrelid = relation.oid and polcmd in ('*', 'r')
              and exists (select from unnest(polroles) as granted where granted = 0 or pg_has_role(granted, 'usage'))),
           false) as row_security,
         pg_has_role(relowner, 'usage') as owned,
         (select coalesce(json_agg(json_build_object(
             'name', attname,
             'type', format_type(case typtype when 'd' then typbasetype else type.oid end, null),
             'not_null', attnotnull,
             'readable', has_column_privilege(relation.oid, attnum, 'select')) order by attnum), '[]')
          from pg_catalog.pg_attribute join pg_catalog.pg_type type on type.oid = atttypid
          where attrelid = relation.oid and attnum > 0 and not attisdropped) as columns
       from pg_catalog.pg_class relation join pg_catalog.pg_namespace namespace on namespace.oid = relnamespace
       where relation.oid = to_regclass($1) and relkind in ('r', 'p', 'v', 'm', 'f')`,
      [relation],
    );
    return found ?? 'missing';
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === insufficientPrivilege) return 'forbidden';
    throw error;
  }
}

/** A column of the catalog by its name. */
export const findColumn = ({ columns }: RelationFacts, name: string): FoundColumn | undefined =>
  columns.find((column) => column.name === name);

import pg from 'pg';
import type { RelationRole } from '../contract.ts';
import { hidesRowsSql } from '../relations.ts';
import type { SourceConnections } from '../source_connection.ts';

/** A difference between the source and what exports need. */
export interface SourceFinding {
  /** `error`: exports fail or lose rows. `warning`: they are slow, or something needs care. */
  readonly level: 'error' | 'warning';
  /** The relation, or the role that reads it. */
  readonly subject: string;
  readonly column: string | null;
  /** What was expected and what was found. It contains no value of a row. */
  readonly message: string;
  /** Statements that mend it; null if a view mends it, or a person has to decide. */
  readonly sql: string | null;
}

/** Creates a finding about a subject, and a column of it if one is concerned. */
export const findingOf = (
  level: SourceFinding['level'],
  subject: string,
  column: string | null,
  message: string,
  sql: string | null = null,
): SourceFinding => ({ level, subject, column, message, sql });

/** A relation that was checked. */
export interface CheckedRelation {
  readonly role: RelationRole;
  /** The setting that names it. */
  readonly setting: string;
  /** The quoted name. */
  readonly relation: string;
  /** Such as `table` or `view`; null if it does not exist. */
  readonly kind: string | null;
}

/** A view with all columns of the contract, over a relation that lacks some. */
export interface DraftView {
  readonly setting: string;
  /** The name of the view, for the setting. */
  readonly name: string;
  readonly sql: string;
  /** The columns that a person has to fill in. */
  readonly to_choose: readonly string[];
}

/** What `exportd source check` found. */
export interface SourceReport {
  /** Whether exports of the checked models can run. */
  readonly ok: boolean;
  readonly relations: readonly CheckedRelation[];
  readonly findings: readonly SourceFinding[];
  readonly views: readonly DraftView[];
  /** Relations that may have the events, while the configured one does not exist. */
  readonly tables: readonly string[];
}

/**
 * Runs a statement in a READ ONLY transaction with settings, and returns its rows.
 * @throws pg.DatabaseError
 */
export type ReadCatalog = <Row extends object>(
  text: string,
  values?: readonly unknown[],
  settings?: Readonly<Record<string, string>>,
) => Promise<readonly Row[]>;

/** Reads with a separate transaction for each statement, so that a rejected one does not end those after it. */
export const catalogReader =
  (connections: SourceConnections, signal?: AbortSignal): ReadCatalog =>
  (text, values = [], settings = {}) =>
    connections.read(settings, signal, async ({ connection }) => {
      const { rows } = await connection.query(text, [...values]);
      // The caller knows the columns of its statement.
      return rows as never[];
    });

/**
 * PostgreSQL's message without values of rows. Those of class 42 contain names and types only; others quote values after
 * the first colon, such as `invalid input syntax for type uuid: "…"`.
 */
export const safeMessage = ({ message, code }: pg.DatabaseError): string =>
  code?.startsWith('42') ? message : (/^[^:"]*[^:"\s]/.exec(message)?.[0] ?? 'no message');

/** A column as the catalog describes it. */
export interface FoundColumn {
  readonly name: string;
  /** The base type of a domain. */
  readonly type: string;
  readonly not_null: boolean;
  readonly readable: boolean;
  /** Whether it alone is the primary key. */
  readonly is_key: boolean;
  /** The expression of its default, as PostgreSQL prints it; null without one. */
  readonly default: string | null;
}

/** A column of events, and what the view has for it. */
interface MappedRole {
  readonly name: string;
  readonly type: string;
  readonly why: string;
  /** The expression of the view. */
  readonly sql: string;
  /** What a person has to know about it; null if nothing. */
  readonly comment: string | null;
}

/** A table whose columns have their roles. */
export interface MappedTable {
  /** Creates the view, its index and its grants. */
  readonly script: string;
  readonly view: DraftView;
  readonly roles: readonly MappedRole[];
  /** The columns of the table. */
  readonly columns: readonly Pick<FoundColumn, 'name' | 'type'>[];
  /** The first rows of the view as text, by its columns; null until every column that exports need is chosen. */
  readonly rows: readonly Readonly<Record<string, string | null>>[] | null;
}

/** The tables that may have the events, and one of them that is mapped. `isRead`: exportd reads a view of its name. */
export interface ListedMapping {
  readonly tables: readonly string[];
  readonly mapping: (MappedTable & { readonly isRead: boolean }) | null;
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
type Unreadable = 'missing' | 'forbidden';

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
         ${hidesRowsSql('relation.oid')} as row_security,
         pg_has_role(relowner, 'usage') as owned,
         (select coalesce(json_agg(json_build_object(
             'name', attname,
             'type', format_type(case typtype when 'd' then typbasetype else type.oid end, null),
             'not_null', attnotnull,
             'readable', has_column_privilege(relation.oid, attnum, 'select'),
             'is_key', exists (select from pg_catalog.pg_index where indrelid = relation.oid and indisprimary
               and indnkeyatts = 1 and indkey[0] = attnum),
             'default', (select pg_get_expr(adbin, adrelid) from pg_catalog.pg_attrdef
               where adrelid = relation.oid and adnum = attnum)) order by attnum), '[]')
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

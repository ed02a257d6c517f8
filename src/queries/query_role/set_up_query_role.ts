import pg from 'pg';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { relationsOf, type RelationSettings } from '../../source/relations.ts';
import { statementResources, type StatementResourceSettings } from '../statement_resources.ts';
import { listWarehouseTables } from '../warehouse_tables.ts';
import { authorizationSql } from './authorization_sql.ts';
import { closeCatalogSql, leakproofSql, queryRoleComment } from './close_catalog_sql.ts';
import { passwordVerifier } from './password_verifier.ts';
import type { QueryRole } from './query_role.ts';
import { findReadableRelations, type ReadableRelation } from './readable_relations.ts';
import { relationAccessSql, withdrawAccessSql } from './relation_access_sql.ts';

const { escapeIdentifier, escapeLiteral } = pg;

/** What to set up, and the statements that do so. */
export interface QueryRoleSetup {
  readonly relations: readonly ReadableRelation[];
  /** A script of one transaction. It contains secrets: the keys that sign, and the verifier of the password. */
  readonly sql: string;
  /** Roles that may insert rows, and are subject to row security: PostgreSQL refuses their COPY FROM. */
  readonly loaders: readonly string[];
}

/** The role itself. It may log in and read, and nothing else; its settings hold whatever a statement tries. */
const roleSql = ({ name, password }: QueryRole): string => {
  const role = escapeIdentifier(name);
  return `
do $$ begin
  if not exists (select from pg_catalog.pg_roles where rolname = ${escapeLiteral(name)}) then
    create role ${role} nosuperuser nocreatedb nocreaterole noreplication nobypassrls noinherit;
  end if;
  if exists (
    select from pg_catalog.pg_roles
    where rolname = ${escapeLiteral(name)} and (rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication)
  ) then
    raise 'The role % may do more than read. Choose another role for EXPORTD_QUERY_DATABASE_URL.', ${escapeLiteral(name)};
  end if;
end $$;
alter role ${role} with login${password === '' ? '' : ` password ${escapeLiteral(passwordVerifier(password))}`};
do $$ begin
  -- The owner of exportd_query.cancel() must be a member of the role. A superuser need not.
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user)
    and not pg_has_role(current_user, ${escapeLiteral(name)}, 'usage') then
    execute format('grant %I to %I', ${escapeLiteral(name)}, current_user);
  end if;
end $$;
comment on role ${role} is ${escapeLiteral(queryRoleComment)};
alter role ${role} set default_transaction_read_only = on;
alter role ${role} set search_path = '';
`;
};

/**
 * Bounds the temporary files of the role, which it cannot bound itself. Only a superuser may, or a role that was granted
 * it; for any other, `exportd doctor` says what to run.
 */
const temporaryFilesSql = (role: string, limit: string): string => `
do $$ begin
  if has_parameter_privilege('temp_file_limit', 'set') then
    alter role ${escapeIdentifier(role)} set temp_file_limit = ${escapeLiteral(limit)};
  end if;
end $$;
`;

/** What a setup does beyond the role. */
export interface QueryRoleSetupOptions {
  /**
   * Whether PUBLIC loses the catalogue and functions, which other roles then need a membership for. Without it, one that
   * is closed stays closed.
   */
  readonly closeCatalog: boolean;
}

/** The settings that a setup depends on. */
export type QueryRoleSetupSettings = RelationSettings &
  StatementResourceSettings &
  Pick<Settings, 'SOURCE_DATABASE_URL'>;

async function prepareOn(
  { pool, source }: { readonly pool: Pool; readonly source: Pick<pg.ClientBase, 'query'> },
  settings: QueryRoleSetupSettings,
  role: QueryRole,
  { closeCatalog }: QueryRoleSetupOptions,
): Promise<QueryRoleSetup> {
  const relations = await findReadableRelations(
    source,
    relationsOf(settings),
    await listWarehouseTables(pool),
  );
  const schemas = await schemasOf(source, relations);
  const statements = [
    "begin;\nset local lock_timeout = '5s';\nset local client_min_messages = warning;",
    // Two that run at once would change the same rows of the catalogue. Roles belong to all databases of a server.
    "select pg_advisory_xact_lock(hashtext('exportd query setup'));",
    `do $$ begin
  if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    lock table pg_catalog.pg_authid in share row exclusive mode;
  end if;
end $$;`,
    roleSql(role),
    temporaryFilesSql(role.name, statementResources(settings).temp_file_limit),
    authorizationSql(role.name, role.keys),
    withdrawAccessSql(role.name),
    ...schemas.map(
      (schema) => `grant usage on schema ${escapeIdentifier(schema)} to ${escapeIdentifier(role.name)};\n`,
    ),
    ...relations.map((relation) => relationAccessSql(role.name, relation)),
    leakproofSql,
    ...(closeCatalog ? [closeCatalogSql(role.name)] : []),
    'commit;',
  ];
  return { relations, sql: statements.join('\n'), loaders: await findLoaders(source, relations) };
}

const tablesOf = (relations: readonly ReadableRelation[]): readonly string[] =>
  relations.filter(({ isTable }) => isTable).map(({ quoted }) => quoted);

async function findLoaders(
  source: Pick<pg.ClientBase, 'query'>,
  relations: readonly ReadableRelation[],
): Promise<readonly string[]> {
  const { rows } = await source.query<{ role: string }>(
    `select distinct rolname::text as role from unnest($1::text[]) as name
     join pg_catalog.pg_class as class on class.oid = to_regclass(name)
     join pg_catalog.pg_roles as role on not rolsuper and not rolbypassrls and role.oid >= 16384
       and has_table_privilege(role.oid, class.oid, 'insert') and not pg_has_role(role.oid, relowner, 'usage')
     order by 1`,
    [tablesOf(relations)],
  );
  return rows.map(({ role }) => role);
}

async function schemasOf(
  source: Pick<pg.ClientBase, 'query'>,
  relations: readonly ReadableRelation[],
): Promise<readonly string[]> {
  const { rows } = await source.query<{ schema: string }>(
    `select distinct nspname::text as schema from unnest($1::text[]) as name
     join pg_catalog.pg_class as class on class.oid = to_regclass(name)
     join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace`,
    [tablesOf(relations)],
  );
  return rows.map(({ schema }) => schema);
}

/** Prepares the setup for the relations that exist in the source now, with the rights of `SOURCE_DATABASE_URL`. */
export const prepareQueryRoleSetup = (
  pool: Pool,
  settings: QueryRoleSetupSettings,
  role: QueryRole,
  options: QueryRoleSetupOptions,
): Promise<QueryRoleSetup> =>
  withSource(settings, (source) => prepareOn({ pool, source }, settings, role, options));

/**
 * Creates or updates the role of queries in the source, with the rights of `SOURCE_DATABASE_URL`. It can be repeated,
 * and has to be after a relation was added.
 */
export const setUpQueryRole = (
  pool: Pool,
  settings: QueryRoleSetupSettings,
  role: QueryRole,
  options: QueryRoleSetupOptions,
): Promise<QueryRoleSetup> =>
  withSource(settings, async (source) => {
    const setup = await prepareOn({ pool, source }, settings, role, options);
    await source.query(setup.sql);
    return setup;
  });

async function withSource<Result>(
  settings: QueryRoleSetupSettings,
  work: (source: pg.Client) => Promise<Result>,
): Promise<Result> {
  const source = new pg.Client({
    connectionString: settings.SOURCE_DATABASE_URL,
    application_name: 'exportd',
  });
  await source.connect();
  try {
    return await work(source);
  } finally {
    await source.end();
  }
}

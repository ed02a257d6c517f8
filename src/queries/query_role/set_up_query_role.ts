import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import pg from 'pg';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { type Relations, type RelationSettings, relationsOf } from '../../source/relations.ts';
import { statementResources, type StatementResourceSettings } from '../query_source.ts';
import { optionalRelations } from '../source_schema.ts';
import { listWarehouseTables, type WarehouseTable } from '../warehouse_tables.ts';
import { authorizationSql, policyNames, type QueryRole, querySchema } from './query_role.ts';

const iterations = 4_096;
const saltBytes = 16;

/** What PostgreSQL stores of a password (SCRAM-SHA-256), so that the password itself appears in no statement and no log. */
function passwordVerifier(password: string): string {
  const salt = randomBytes(saltBytes);
  const salted = pbkdf2Sync(password.normalize('NFKC'), salt, iterations, 32, 'sha256');
  const keyOf = (name: string): Buffer => createHmac('sha256', salted).update(name).digest();
  const stored = createHash('sha256').update(keyOf('Client Key')).digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${keyOf('Server Key').toString('base64')}`;
}

/**
 * The functions of `pg_catalog` that are not immutable and that compiled queries call. Immutable ones see nothing but
 * their arguments; all others are closed to the role of queries.
 */
const allowedFunctions: readonly string[] = [
  // Times. Their results depend on the session's time zone.
  'age',
  'date',
  'date_add',
  'date_part',
  'date_subtract',
  'date_trunc',
  'extract',
  'generate_series',
  'make_timestamptz',
  'overlaps',
  'time',
  'timestamp',
  'timestamptz',
  'timetz',
  'timezone',
  'to_char',
  'to_date',
  'to_number',
  'to_timestamp',
  'in_range',
  'now',
  'transaction_timestamp',
  'statement_timestamp',
  'clock_timestamp',
  // Texts, arrays and documents. The output functions of types decide what they return.
  'array_to_json',
  'array_to_string',
  'concat',
  'concat_ws',
  'convert',
  'convert_from',
  'convert_to',
  'format',
  'length',
  'quote_literal',
  'quote_nullable',
  'json_build_array',
  'json_build_object',
  'jsonb_build_array',
  'jsonb_build_object',
  'json_to_recordset',
  'jsonb_to_recordset',
  'row_to_json',
  'jsonb_path_exists_tz',
  'jsonb_path_match_tz',
  'jsonb_path_query_array_tz',
  'to_json',
  'to_jsonb',
  'jsonb_path_query_first_tz',
  'jsonb_path_query_tz',
  'pg_input_is_valid',
  'pg_typeof',
  'random',
  'gen_random_uuid',
  // What exportd asks for at the start of each transaction.
  'pg_backend_pid',
  'pg_is_in_recovery',
];

const { escapeIdentifier, escapeLiteral } = pg;

/** Tells roles of queries from others, which keep their rights. */
const queryRoleComment = 'Runs the queries of exportd.';

/** The role that keeps, for all other roles, what PUBLIC loses. */
export const otherRoles = 'exportd_other_roles';

/**
 * Row security allows an index for a condition only if its operator cannot fail with a value in the message. `->>` returns
 * null for anything but an object. Only a superuser can say so.
 */
const leakproofSql = `
do $$ begin
  if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    alter function pg_catalog.jsonb_object_field_text(jsonb, text) leakproof;
  end if;
end $$;
`;

/**
 * Closes the catalogue and the functions that reach beyond their arguments to the role of queries. PostgreSQL knows no
 * rights that are denied to one role, so PUBLIC loses them, and all other roles get them back by a membership. Only a
 * superuser can do so.
 */
const closeCatalogSql = (role: string): string => `
do $$
declare
  found record;
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    raise notice 'The catalogue stays readable for %: only a superuser can close it.', ${escapeLiteral(role)};
    return;
  end if;
  if not exists (select from pg_catalog.pg_roles where rolname = '${otherRoles}') then
    create role ${otherRoles} nologin;
  end if;
  revoke ${otherRoles} from ${escapeIdentifier(role)};
  for found in
    select format('grant ${otherRoles} to %I', rolname) as statement from pg_catalog.pg_roles
    where not rolsuper and oid >= 16384 and rolname <> '${otherRoles}'
      -- Another database of the server may have a role of queries, too.
      and shobj_description(oid, 'pg_authid') is distinct from ${escapeLiteral(queryRoleComment)}
      and not pg_has_role(oid, '${otherRoles}', 'member')
    union all
    -- Tables and views, also of extensions.
    select format('revoke all on %1$I.%2$I from public; grant %3$s on %1$I.%2$I to ${otherRoles}', nspname, relname,
      string_agg(privilege_type, ', '))
    from pg_catalog.pg_class join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace,
      aclexplode(relacl) as acl
    where relkind in ('r', 'p', 'v', 'm', 'f') and acl.grantee = 0 and nspname not like 'pg\\_temp%'
    group by nspname, relname
    union all
    select format('revoke %4$s (%3$I) on %1$I.%2$I from public; grant %4$s (%3$I) on %1$I.%2$I to ${otherRoles}',
      nspname, relname, attname, privilege_type)
    from pg_catalog.pg_attribute join pg_catalog.pg_class as class on class.oid = attrelid
      join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace, aclexplode(attacl) as acl
    where acl.grantee = 0
    union all
    -- Functions, except operators, casts, aggregates and those that see only their arguments.
    select format('revoke all on routine %1$s from public; grant execute on routine %1$s to ${otherRoles}',
      function.oid::regprocedure)
    from pg_catalog.pg_proc as function join pg_catalog.pg_namespace as namespace on namespace.oid = pronamespace,
      aclexplode(coalesce(proacl, acldefault('f', proowner))) as acl
    where acl.grantee = 0 and nspname <> '${querySchema}' and (nspname <> 'pg_catalog' or (
      provolatile <> 'i' and prokind in ('f', 'p')
      and proname not in (${allowedFunctions.map(escapeLiteral).join(', ')})
      and not exists (select from pg_catalog.pg_operator where oprcode = function.oid)
      and not exists (
        select from pg_catalog.pg_cast
        where castfunc = function.oid and casttarget not in ('regclass'::regtype, 'xml'::regtype)
      )
    ))
    union all
    select format('revoke usage on language %1$I from public; grant usage on language %1$I to ${otherRoles}', lanname)
    from pg_catalog.pg_language, aclexplode(coalesce(lanacl, acldefault('l', lanowner))) as acl
    where lanpltrusted and acl.grantee = 0
    union all
    select format('revoke temporary on database %1$I from public; grant temporary on database %1$I to ${otherRoles}',
      current_database())
  loop
    execute found.statement;
  end loop;
end
$$;
`;

/** A relation of the source that the role of queries may read, and which rows belong to which project. */
interface ReadableRelation {
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

const team = `(select ${querySchema}.team_id())`;

/** The rows that a project may read. `(select …)` computes the project once per statement. */
function rowsOfProject({ teamColumns, soleProject }: ReadableRelation): string {
  if (soleProject !== null) return `${team} = ${String(soleProject)}`;
  const conditions = teamColumns.map(({ column, projects }) => {
    const rows = `${escapeIdentifier(column)} = ${team}`;
    return projects === null ? rows : `${team} in (${projects.join(', ')}) and ${rows}`;
  });
  return conditions.length === 1 ? conditions.join('') : conditions.map((one) => `(${one})`).join(' or ');
}

/**
 * Lets the role of queries read the rows of the transaction's project in one relation. A table gets row security, which
 * leaves its indexes usable. Anything else is read through a view, which PostgreSQL evaluates before the conditions of
 * the query.
 */
function relationAccessSql(role: string, relation: ReadableRelation): string {
  const grantee = escapeIdentifier(role);
  const rows = rowsOfProject(relation);
  const { name, quoted, isTable, hasRowSecurity } = relation;
  const register = (target: string) =>
    `insert into ${querySchema}.relations (name, relation) values (${escapeLiteral(name)}, ${escapeLiteral(target)});`;
  if (!isTable) {
    const view = `${querySchema}.${escapeIdentifier(quoted)}`;
    return `
create view ${view} with (security_barrier) as select * from ${quoted} where ${rows};
grant select on ${view} to ${grantee};
${register(view)}
`;
  }
  const others = hasRowSecurity
    ? ''
    : `create policy ${policyNames.others} on ${quoted} using (true) with check (true);\n`;
  return `
alter table ${quoted} enable row level security;
${others}create policy ${policyNames.reading} on ${quoted} for select to ${grantee} using (true);
create policy ${policyNames.restriction} on ${quoted} as restrictive to ${grantee} using (${rows});
grant select on ${quoted} to ${grantee};
${register(quoted)}
`;
}

/** Withdraws what an earlier setup allowed: relations may have been removed since. */
const withdrawAccessSql = (role: string): string => `
do $$
declare
  found record;
begin
  for found in
    select format('drop policy %I on %I.%I', policyname, schemaname, tablename) as statement
    from pg_catalog.pg_policies where policyname in (${Object.values(policyNames).map(escapeLiteral).join(', ')})
    union all
    -- Also from a role that queries ran under before.
    select format('revoke all on %I.%I from %I', schemaname, tablename, grantee)
    from pg_catalog.pg_policies, unnest(roles) as grantee where policyname = ${escapeLiteral(policyNames.restriction)}
    union all
    select format('alter table %I.%I disable row level security', schemaname, tablename)
    from pg_catalog.pg_policies where policyname = ${escapeLiteral(policyNames.others)}
    union all
    select format('drop view %I.%I', schemaname, viewname) from pg_catalog.pg_views
    where schemaname = ${escapeLiteral(querySchema)}
    union all
    select format('revoke all on %I.%I from %I', nspname, relname, ${escapeLiteral(role)})
    from pg_catalog.pg_class
    join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
    where nspname <> ${escapeLiteral(querySchema)} and exists (
      select from aclexplode(relacl) where grantee = (select oid from pg_catalog.pg_roles where rolname = ${escapeLiteral(role)})
    )
  loop
    execute found.statement;
  end loop;
end
$$;
`;

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
type QueryRoleSetupSettings = RelationSettings &
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

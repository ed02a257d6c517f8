import type pg from 'pg';
import type { Settings } from '../../config/settings.ts';
import { relationsOf, type RelationSettings } from '../../source/relations.ts';
import { connectQueriesToSource, queryTransaction, type StatementResourceSettings } from '../query_source.ts';
import type { WarehouseTable } from '../warehouse_tables.ts';
import { policyNames, queryRoleOf, type QueryRoleSettings, querySchema, teamSetting } from './query_role.ts';
import { findReadableRelations } from './set_up_query_role.ts';

type CheckedSettings = RelationSettings &
  QueryRoleSettings &
  StatementResourceSettings &
  Pick<Settings, 'SOURCE_DATABASE_URL' | 'EXPORTD_QUERY_SLOTS' | 'EXPORTD_QUERY_ASYNC_TIMEOUT'>;

/** What the check of the role of queries found. */
interface QueryRoleReport {
  readonly role: string;
  readonly relations: number;
  /** Whether the catalogue and functions that reach beyond their arguments are closed to the role. */
  readonly isCatalogClosed: boolean;
  /** Whether the role has a limit on temporary files. */
  readonly limitsTemporaryFiles: boolean;
  /** What the role may do and should not, or cannot do and should; each names what to do. */
  readonly problems: readonly string[];
}

/** Any project: the check reads no rows of it. */
const anyTeam = 1;
const timeoutMs = 10_000;
const insufficientPrivilege = '42501';

/**
 * Checks the role of queries, as the role of the source sees it, and by a transaction of its own. Null if queries run
 * under the role of the source.
 * @throws errors of unreachable databases
 */
export async function checkQueryRole(
  source: Pick<pg.ClientBase, 'query'>,
  settings: CheckedSettings,
  warehouseTables: readonly WarehouseTable[],
): Promise<QueryRoleReport | null> {
  const role = queryRoleOf(settings);
  if (!role) return null;
  const expected = await findReadableRelations(source, relationsOf(settings), warehouseTables);
  const { rows } = await source.query<{
    rights: string[];
    readable: string[];
    functions: string[];
    unprotected: string[];
    closed: boolean;
    limited: boolean;
    cancels: boolean;
  }>(factsSql, [role.name, querySchema, policyNames.restriction]);
  const [facts] = rows;
  if (!facts)
    return {
      role: role.name,
      relations: 0,
      isCatalogClosed: false,
      limitsTemporaryFiles: false,
      problems: [`the role ${role.name} does not exist: run "exportd query setup"`],
    };
  const names = expected.map(({ isTable, quoted }) => (isTable ? quoted : viewOf(quoted)));
  const list = (items: readonly string[]): string => items.join(', ');
  const extra = facts.readable.filter((name) => !names.includes(name));
  const problems = [
    ...(facts.rights.length > 0 ? [`the role may ${list(facts.rights)}: take that right from it`] : []),
    ...(extra.length > 0 ? [`the role may also read ${list(extra)}: revoke that, also from PUBLIC`] : []),
    ...(facts.functions.length > 0
      ? [
          `the role may call ${list(facts.functions)}: revoke that from PUBLIC, or run "exportd query setup" as a superuser`,
        ]
      : []),
    ...(facts.unprotected.length > 0
      ? [`row security does not restrict ${list(facts.unprotected)}: run "exportd query setup"`]
      : []),
    ...(facts.cancels ? [] : ['its statements cannot be cancelled: run "exportd query setup"']),
    ...(await problemsOfTransactions(
      settings,
      expected.map(({ name }) => name),
    )),
  ];
  return {
    role: role.name,
    relations: expected.length,
    isCatalogClosed: facts.closed,
    limitsTemporaryFiles: facts.limited,
    problems,
  };
}

const viewOf = (quoted: string): string => `${querySchema}."${quoted.replaceAll('"', '""')}"`;

/** What the catalogue says of a role. Without the role, there is no row. */
const factsSql = `
  select array_remove(array[
      case when rolsuper then 'do everything (superuser)' end,
      case when rolbypassrls then 'bypass row security' end,
      case when rolcreaterole then 'create roles' end,
      case when rolcreatedb then 'create databases' end,
      case when rolreplication then 'replicate' end,
      case when has_database_privilege(role.oid, current_database(), 'create') then 'create schemas' end,
      case when exists (select from pg_auth_members where member = role.oid) then 'act as another role' end,
      case when exists (
        select from pg_shdepend where refobjid = role.oid and refclassid = 'pg_authid'::regclass and deptype = 'o'
      ) then 'change what it owns' end
    ], null) as rights,
    array(
      select format('%I.%I', nspname, relname) from pg_class join pg_namespace as namespace on namespace.oid = relnamespace
      where relkind in ('r', 'p', 'v', 'm', 'f') and nspname not in ('pg_catalog', 'information_schema')
        and has_schema_privilege(role.oid, namespace.oid, 'usage') and (
          has_table_privilege(role.oid, pg_class.oid, 'select') or has_any_column_privilege(role.oid, pg_class.oid, 'select')
          or has_table_privilege(role.oid, pg_class.oid, 'insert, update, delete, truncate')
        )
      order by 1
    ) as readable,
    array(
      select function.oid::regprocedure::text from pg_proc as function join pg_namespace as namespace on namespace.oid = pronamespace
      where nspname not in ('pg_catalog', 'information_schema', $2) and has_schema_privilege(role.oid, namespace.oid, 'usage')
        and has_function_privilege(role.oid, function.oid, 'execute')
        and prorettype <> 'trigger'::regtype
        -- Those with the rights of their owner, and those of extensions that do more than compute.
        and (prosecdef or provolatile = 'v' and prolang = (select oid from pg_language where lanname = 'c'))
      order by 1 limit 10
    ) as functions,
    array(
      select format('%I.%I', nspname, relname) from pg_class join pg_namespace as namespace on namespace.oid = relnamespace
      where relkind in ('r', 'p') and nspname not in ('pg_catalog', 'information_schema')
        and has_schema_privilege(role.oid, namespace.oid, 'usage') and has_table_privilege(role.oid, pg_class.oid, 'select')
        and not (relrowsecurity and exists (
          select from pg_policy where polrelid = pg_class.oid and polname = $3 and not polpermissive and role.oid = any (polroles)
            and pg_get_expr(polqual, polrelid) like '%' || $2 || '.team_id()%'
        ))
      order by 1
    ) as unprotected,
    not has_table_privilege(role.oid, 'pg_catalog.pg_class', 'select')
      and not has_function_privilege(role.oid, 'pg_catalog.set_config(text, text, boolean)', 'execute') as closed,
    exists (
      select from pg_db_role_setting, unnest(setconfig) as setting
      where setrole = role.oid and setting like 'temp\\_file\\_limit=%' and setting <> 'temp_file_limit=-1'
    ) as limited,
    exists (
      select from pg_proc join pg_namespace as namespace on namespace.oid = pronamespace
        join pg_roles as owner on owner.oid = proowner
      where nspname = $2 and proname = 'cancel' and (owner.rolsuper
        or pg_has_role(owner.oid, role.oid, 'usage') or pg_has_role(owner.oid, 'pg_signal_backend', 'usage'))
    ) as cancels
  from pg_roles as role where rolname = $1`;

/** Whether transactions of the role read what they should: the relations of a signed project, and nothing without one. */
async function problemsOfTransactions(
  settings: CheckedSettings,
  names: readonly string[],
): Promise<readonly string[]> {
  const queries = connectQueriesToSource({ ...settings, EXPORTD_QUERY_SLOTS: 1 });
  try {
    const unreadable = await queries.read(
      queryTransaction(timeoutMs, anyTeam),
      undefined,
      async ({ connection }) => {
        const { rows } = await connection.query<{ name: string; relation: string }>(
          `select name, relation from ${querySchema}.readable($1)`,
          [names],
        );
        for (const { relation } of rows) await connection.query(`select from ${relation} limit 0`);
        await connection.query(`select ${querySchema}.team_id()`);
        return names.filter((name) => !rows.some((row) => row.name === name));
      },
    );
    return [
      ...(unreadable.length > 0
        ? [`queries cannot read ${unreadable.join(', ')}: run "exportd query setup"`]
        : []),
      ...((await readsWithoutSignature(queries))
        ? ['a transaction can choose its project: run "exportd query setup"']
        : []),
    ];
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return [
      `a query failed (${message}): run "exportd query setup", also after a change of EXPORTD_ENCRYPTION_KEYS`,
    ];
  } finally {
    await queries.close();
  }
}

/** Whether a statement can choose the project. The failure must be that of the function, not of its arguments. */
const readsWithoutSignature = (queries: ReturnType<typeof connectQueriesToSource>): Promise<boolean> =>
  queries
    .read({}, undefined, async ({ connection }) => {
      await connection.query(`set local ${teamSetting} = '${anyTeam}'`);
      await connection.query(`select ${querySchema}.team_id()`);
      return true;
    })
    .catch((error: unknown) => (error as pg.DatabaseError).code !== insufficientPrivilege);

import pg from 'pg';
import { allowedFunctions } from './allowed_functions.ts';
import { querySchema } from './authorization_sql.ts';

const { escapeIdentifier, escapeLiteral } = pg;

/** Tells roles of queries from others, which keep their rights. */
export const queryRoleComment = 'Runs the queries of exportd.';

/** The role that keeps, for all other roles, what PUBLIC loses. */
export const otherRoles = 'exportd_other_roles';

/**
 * Row security allows an index for a condition only if its operator cannot fail with a value in the message. `->>` returns
 * null for anything but an object. Only a superuser can say so.
 */
export const leakproofSql = `
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
export const closeCatalogSql = (role: string): string => `
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

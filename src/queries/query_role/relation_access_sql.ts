import pg from 'pg';
import { querySchema } from './authorization_sql.ts';
import { policyNames } from './policy_names.ts';
import type { ReadableRelation } from './readable_relations.ts';

const { escapeIdentifier, escapeLiteral } = pg;
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
export function relationAccessSql(role: string, relation: ReadableRelation): string {
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
export const withdrawAccessSql = (role: string): string => `
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

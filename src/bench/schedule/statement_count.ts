import type { Pool } from '../../journal/database.ts';

/** Prepares counting; a server that was not started for it does not count. */
export async function countStatements(pool: Pool): Promise<boolean> {
  try {
    await pool.query('create extension if not exists pg_stat_statements');
    await pool.query('select from pg_stat_statements limit 1');
    return true;
  } catch {
    return false;
  }
}

/** How many statements were executed on the scratch database so far, `begin` and `commit` among them. */
export async function statementsSoFar(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ calls: number }>(
    `select coalesce(sum(calls), 0)::float8 as calls from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database())`,
  );
  return rows[0]?.calls ?? 0;
}

import type { Pool } from '../../journal/database.ts';

/** Installs pg_stat_statements. @returns Whether the server counts statements. */
export async function countStatements(pool: Pool): Promise<boolean> {
  try {
    await pool.query('create extension if not exists pg_stat_statements');
    await pool.query('select from pg_stat_statements limit 1');
    return true;
  } catch {
    return false;
  }
}

/** Number of statements on the scratch database so far, including `begin` and `commit`. */
export async function statementsSoFar(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ calls: number }>(
    `select coalesce(sum(calls), 0)::float8 as calls from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database())`,
  );
  return rows[0]?.calls ?? 0;
}

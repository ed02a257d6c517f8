import type { Pool } from '../../src/journal/database.ts';

/** All rows of tables of the control database as text, in which a test searches what must not be stored. */
export async function storedText(pool: Pool, ...tables: readonly string[]): Promise<string> {
  const texts: string[] = [];
  for (const table of tables) {
    const { rows } = await pool.query<{ row: string }>(
      `select line::text as row from exportd.${table} line order by 1`,
    );
    texts.push(...rows.map(({ row }) => row));
  }
  return texts.join('\n');
}

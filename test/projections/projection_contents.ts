import type { Pool } from '../../src/journal/database.ts';
import { projections } from '../../src/projections/registry.ts';

/** All tables of the projections. */
export const projectionTables = projections.flatMap(({ owns }) => owns);

/** Dumps all tables of the projections as text. */
export async function projectionContents(pool: Pool): Promise<string> {
  const dumps: string[] = [];
  for (const table of projectionTables) {
    const { rows } = await pool.query<{ readRows: string | null }>(
      `select string_agg(line::text, e'\\n' order by line::text) as dump from ${table} as line`,
    );
    dumps.push(`${table}\n${rows[0]?.readRows ?? ''}`);
  }
  return dumps.join('\n');
}

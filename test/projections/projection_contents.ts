import type { Pool } from '../../src/journal/database.ts';
import { projections } from '../../src/projections/registry.ts';

/** All tables of the projections. */
export const projectionTables = projections.flatMap(({ owns }) => owns);

/** Dumps all tables of the projections as text. */
export async function projectionContents(pool: Pool): Promise<string> {
  const dumps: string[] = [];
  for (const table of projectionTables) {
    const { rows } = await pool.query<{ dump: string | null }>(
      `select string_agg(line::text, e'\\n' order by line::text) as dump from ${table} as line`,
    );
    const dump = rows[0];
    if (dump === undefined) throw new Error(`No dump of ${table}.`);
    dumps.push(`${table}\n${dump.dump ?? ''}`);
  }
  return dumps.join('\n');
}

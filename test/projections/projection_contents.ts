import type { Pool } from '../../src/journal/database.ts';
import { projections } from '../../src/projections/registry.ts';

/** Every table that projections own. */
export const projectionTables = projections.flatMap(({ owns }) => owns);

/** All that they hold, as text. */
export async function projectionContents(pool: Pool): Promise<string> {
  const dumps: string[] = [];
  for (const table of projectionTables) {
    const { rows } = await pool.query<{ dump: string | null }>(
      `select string_agg(line::text, e'\\n' order by line::text) as dump from ${table} as line`,
    );
    dumps.push(`${table}\n${rows[0]?.dump ?? ''}`);
  }
  return dumps.join('\n');
}

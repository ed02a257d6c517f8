import type { Command } from '../../src/journal/commands.ts';
import type { Connection, Pool } from '../../src/journal/database.ts';

/** Reads the commands of an export in the order in which they were stored. */
export async function readCommands(
  pool: Pool | Connection,
  batchExportId: string,
): Promise<Pick<Command, 'id' | 'name' | 'status' | 'body'>[]> {
  const { rows } = await pool.query<Pick<Command, 'id' | 'name' | 'status' | 'body'>>(
    'select id, name, status, body from exportd.commands where batch_export_id = $1 order by position',
    [batchExportId],
  );
  return rows;
}

/** The same in words: `pause applied`. */
export const commandsInWords = async (pool: Pool | Connection, batchExportId: string): Promise<string[]> =>
  (await readCommands(pool, batchExportId)).map(({ name, status }) => `${name} ${status}`);

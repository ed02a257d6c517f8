import { randomUUID } from 'node:crypto';
import { storeCommand, type CommandName } from '../../src/journal/commands.ts';
import type { Pool } from '../../src/journal/database.ts';

/** Stores a command, of project 1 by default, as the HTTP API does. Returns its id. */
export async function storeTestCommand(
  pool: Pool,
  batchExportId: string,
  name: CommandName,
  body: Record<string, unknown> = {},
  teamId = 1,
): Promise<string> {
  const { id } = await storeCommand(pool, {
    id: randomUUID(),
    batch_export_id: batchExportId,
    team_id: teamId,
    name,
    body,
    fingerprint: '',
    idempotency_key: null,
    user_id: null,
  });
  return id;
}

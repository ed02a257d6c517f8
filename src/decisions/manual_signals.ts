import { commandIdOf, type ReceivedSignal } from '../contract/signals.ts';
import { isId } from '../contract/workflow_ids.ts';
import { commandBodySchemas, recordCommandOutcome } from '../journal/commands.ts';
import type { Pool } from '../journal/database.ts';
import { deterministicId, type Journal } from '../journal/journal.ts';
import { writeLogLine } from '../journal/log_lines.ts';

const isCommandName = (name: string): name is keyof typeof commandBodySchemas =>
  Object.hasOwn(commandBodySchemas, name);

/**
 * Stores a manual signal as a command. An invalid signal is stored as a rejected command, and so is one that names a
 * command which the export does not have. A signal that names a stored command is ignored here.
 */
export async function storeManualSignal(
  journal: Journal,
  batchExportId: string,
  signal: ReceivedSignal,
): Promise<void> {
  const commandId = commandIdOf(signal.input);
  if (commandId !== undefined && (await hasCommand(journal.pool, batchExportId, commandId))) return;
  const id = deterministicId('signal', batchExportId, signal.chain, signal.ordinal);
  await journal.transaction(async ({ connection }) => {
    const { rows } = await connection.query<{ team_id: number }>(
      'select team_id from exportd.batch_exports where id = $1',
      [batchExportId],
    );
    const teamId = rows[0]?.team_id;
    if (teamId === undefined) return;
    const parsed =
      isCommandName(signal.name) && commandId === undefined
        ? commandBodySchemas[signal.name].safeParse(signal.input ?? {})
        : undefined;
    // An unknown name is stored too (without NUL, which PostgreSQL rejects) and rejected below.
    const name = signal.name.replaceAll('\0', '').slice(0, 100);
    const { rowCount } = await connection.query(
      `insert into exportd.commands (id, batch_export_id, team_id, name, body) values ($1, $2, $3, $4, $5)
       on conflict do nothing`,
      [id, batchExportId, teamId, name, JSON.stringify(parsed?.success ? parsed.data : {})],
    );
    if (rowCount === 0 || parsed?.success) return;
    const issue = parsed?.error.issues[0];
    const detail =
      commandId !== undefined
        ? `The batch export has no command "${commandId.replaceAll('\0', '')}".`
        : issue
          ? `${issue.path.join('.') || 'payload'}: ${issue.message}`
          : `Unknown signal "${name}".`;
    await recordCommandOutcome(connection, id, 'rejected', { code: 'invalid_input', detail, attr: null });
    await writeLogLine(connection, {
      team_id: teamId,
      batch_export_id: batchExportId,
      run_id: null,
      level: 'WARNING',
      message: `Manual signal was rejected: ${detail}`,
    });
  });
}

async function hasCommand(pool: Pool, batchExportId: string, id: string): Promise<boolean> {
  if (!isId(id)) return false;
  const { rows } = await pool.query('select from exportd.commands where id = $1 and batch_export_id = $2', [
    id,
    batchExportId,
  ]);
  return rows.length > 0;
}

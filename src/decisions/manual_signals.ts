import { commandIdOf, type ReceivedSignal } from '../contract/signals.ts';
import { isId } from '../contract/workflow_ids.ts';
import { commandBodySchemas, recordCommandOutcome } from '../journal/commands.ts';
import type { Pool } from '../journal/database.ts';
import { deterministicId, type Journal } from '../journal/journal.ts';
import { writeLogLine } from '../journal/log_lines.ts';

const isCommandName = (name: string): name is keyof typeof commandBodySchemas =>
  Object.hasOwn(commandBodySchemas, name);

/**
 * Stores a signal that was sent by hand as a command of its own; nonsense is stored too, as refused, and so is one that
 * names a command which the export does not have. A signal that names a stored one needs nothing here.
 */
export async function storeManualSignal(
  journal: Journal,
  batchExportId: string,
  signal: ReceivedSignal,
): Promise<void> {
  const named = commandIdOf(signal.input);
  if (named !== undefined && (await hasCommand(journal.pool, batchExportId, named))) return;
  const id = deterministicId('signal', batchExportId, signal.chain, signal.ordinal);
  await journal.transaction(async ({ connection }) => {
    const { rows } = await connection.query<{ team_id: number }>(
      'select team_id from exportd.batch_exports where id = $1',
      [batchExportId],
    );
    const teamId = rows[0]?.team_id;
    if (teamId === undefined) return;
    const parsed =
      isCommandName(signal.name) && named === undefined
        ? commandBodySchemas[signal.name].safeParse(signal.input ?? {})
        : undefined;
    // A name that is no command is kept as it came, but for what PostgreSQL cannot hold: it is refused right below.
    const name = signal.name.replaceAll('\0', '').slice(0, 100);
    const { rowCount } = await connection.query(
      `insert into exportd.commands (id, batch_export_id, team_id, name, body) values ($1, $2, $3, $4, $5)
       on conflict do nothing`,
      [id, batchExportId, teamId, name, JSON.stringify(parsed?.success ? parsed.data : {})],
    );
    if (rowCount === 0 || parsed?.success) return;
    const issue = parsed?.error.issues[0];
    const detail =
      named !== undefined
        ? `The batch export has no command "${named.replaceAll('\0', '')}".`
        : issue
          ? `${issue.path.join('.') || 'The payload'}: ${issue.message}`
          : `There is no signal "${name}".`;
    await recordCommandOutcome(connection, id, 'rejected', { code: 'invalid_input', detail, attr: null });
    await writeLogLine(connection, {
      team_id: teamId,
      batch_export_id: batchExportId,
      run_id: null,
      level: 'WARNING',
      message: `A signal sent by hand was refused: ${detail}`,
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

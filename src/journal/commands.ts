import { z } from 'zod';
import type { Connection, Pool } from './database.ts';

/** Everything that may be asked of a batch export. */
export type CommandName =
  | 'create'
  | 'update'
  | 'pause'
  | 'unpause'
  | 'backfill'
  | 'retry'
  | 'delete'
  | 'cancelRun'
  | 'cancelBackfill'
  | 'pauseBackfill'
  | 'unpauseBackfill';

/** How far a command has come. Withdrawn: taken back, since Temporal could not be told of it. */
export type CommandStatus = 'pending' | 'applied' | 'no-op' | 'rejected' | 'withdrawn';

/** What became of a command: ids of what it started, or why it was refused. */
export interface CommandOutcome {
  readonly backfill_id?: string;
  readonly run_id?: string;
  readonly code?: string;
  readonly detail?: string;
  readonly attr?: string | null;
}

/** A command as it is stored. */
export interface Command {
  readonly id: string;
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly name: CommandName;
  readonly body: Record<string, unknown>;
  readonly fingerprint: string;
  readonly status: CommandStatus;
  readonly outcome: CommandOutcome | null;
}

/** The channel that carries the id of every command whose outcome is known. */
export const outcomeChannel = 'exportd_commands';

const columns = 'id, batch_export_id, team_id, name, body, fingerprint, status, outcome';

/** A request that arrived over HTTP. */
export interface CommandRequest {
  readonly id: string;
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly name: CommandName;
  readonly body: Record<string, unknown>;
  readonly fingerprint: string;
  readonly idempotency_key: string | null;
  readonly user_id: number | null;
}

/**
 * Stores a command as pending. A request with an Idempotency-Key that the project has used before is not stored again:
 * the first one comes back, and the caller compares fingerprints.
 */
export async function storeCommand(pool: Pool | Connection, request: CommandRequest): Promise<Command> {
  const { rows } = await pool.query<Command>(
    `with inserted as (
       insert into exportd.commands (id, batch_export_id, team_id, name, body, fingerprint, idempotency_key, user_id)
       values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing returning ${columns})
     select ${columns} from inserted
     union all
     select ${columns} from exportd.commands
     where not exists (select from inserted) and (id = $1 or (team_id = $3 and idempotency_key = $7))
     limit 1`,
    [
      request.id,
      request.batch_export_id,
      request.team_id,
      request.name,
      JSON.stringify(request.body),
      request.fingerprint,
      request.idempotency_key,
      request.user_id,
    ],
  );
  const [stored] = rows;
  // Between the two halves of the statement another session may have committed the same key: it is visible now.
  return stored ?? storeCommand(pool, request);
}

/** The command that a project stored with this Idempotency-Key. */
export async function findCommandByIdempotencyKey(
  pool: Pool,
  teamId: number,
  key: string,
): Promise<Command | undefined> {
  const { rows } = await pool.query<Command>(
    `select ${columns} from exportd.commands where team_id = $1 and idempotency_key = $2`,
    [teamId, key],
  );
  return rows[0];
}

/** A command by its id. */
export async function readCommand(pool: Pool | Connection, id: string): Promise<Command | undefined> {
  const { rows } = await pool.query<Command>(`select ${columns} from exportd.commands where id = $1`, [id]);
  return rows[0];
}

/** Ids of the export's commands that wait to be decided, in the order they were stored. */
export async function pendingCommands(pool: Pool, batchExportId: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select id from exportd.commands where batch_export_id = $1 and status = 'pending' order by position`,
    [batchExportId],
  );
  return rows.map(({ id }) => id);
}

/** The command, locked, if it still waits to be decided. */
export async function lockPendingCommand(connection: Connection, id: string): Promise<Command | undefined> {
  const { rows } = await connection.query<Command>(
    `select ${columns} from exportd.commands where id = $1 and status = 'pending' for update`,
    [id],
  );
  return rows[0];
}

/** Records what became of a command and wakes whoever waits for it, when the transaction commits. */
export async function recordCommandOutcome(
  connection: Connection,
  id: string,
  status: Exclude<CommandStatus, 'pending'>,
  outcome: CommandOutcome,
): Promise<void> {
  await connection.query(
    `update exportd.commands set status = $2, outcome = $3, decided_at = clock_timestamp() where id = $1`,
    [id, status, JSON.stringify(outcome)],
  );
  await connection.query('select pg_notify($1, $2)', [outcomeChannel, id]);
}

/** Takes back a command that nobody has decided yet; false when it was decided in the meantime. */
export async function withdrawCommand(pool: Pool, id: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update exportd.commands set status = 'withdrawn', decided_at = clock_timestamp() where id = $1 and status = 'pending'`,
    [id],
  );
  return rowCount === 1;
}

/**
 * Puts a withdrawn command back, when the same request arrives again with the same Idempotency-Key: nothing was done
 * for it, and the client repeats it to have it done. Undefined when it is not withdrawn (any more).
 */
export async function requeueCommand(pool: Pool, id: string): Promise<Command | undefined> {
  const { rows } = await pool.query<Command>(
    `update exportd.commands set status = 'pending', decided_at = null where id = $1 and status = 'withdrawn'
     returning ${columns}`,
    [id],
  );
  return rows[0];
}

/** The times that a command may name: what JavaScript and PostgreSQL both write with four digits of a year. */
const timestampBounds = {
  first: Date.parse('1970-01-01T00:00:00Z'),
  after: Date.parse('3000-01-01T00:00:00Z'),
};

/** A time as a command's body holds it: ISO 8601 with an offset. */
export const timestamp = z.iso
  .datetime({
    offset: true,
    error: 'Must be an ISO 8601 time with an offset, such as 2026-11-01T10:00:00Z.',
  })
  .refine(
    (text) => Date.parse(text) >= timestampBounds.first && Date.parse(text) < timestampBounds.after,
    'Must lie between the years 1970 and 3000.',
  );

/**
 * The bodies of the commands that may also be signalled by hand. Members that mean nothing to a command are ignored,
 * as the interface has it for the same bodies over HTTP.
 */
export const commandBodySchemas = {
  pause: z.object({ last_paused_at: timestamp.nullish() }),
  unpause: z.object({ backfill: z.boolean().optional() }),
  backfill: z.object({ start_at: timestamp, end_at: timestamp }),
  retry: z.object({ run_id: z.uuid() }),
  delete: z.object({}),
} as const;

import * as z from 'zod';
import { activeTraceParent } from '../tracing/spans.ts';
import type { Connection, Pool } from './database.ts';

/** The commands that this version knows. A newer one may have stored others, which stay pending until its workers decide them. */
export const commandNames = [
  'create',
  'update',
  'pause',
  'unpause',
  'backfill',
  'retry',
  'retryFailed',
  'delete',
  'cancelRun',
  'cancelBackfill',
  'pauseBackfill',
  'unpauseBackfill',
] as const;
export type CommandName = (typeof commandNames)[number];

/** The status of a command. `withdrawn`: cancelled by the HTTP API because Temporal could not be signalled. */
type CommandStatus = 'pending' | 'applied' | 'no-op' | 'rejected' | 'withdrawn';

/** The outcome of a command: the ids of what it created, or why it was rejected. */
export interface CommandOutcome {
  readonly backfill_id?: string;
  readonly run_id?: string;
  /** The number of failed runs that it retries. */
  readonly runs?: number;
  readonly code?: string;
  readonly detail?: string;
  readonly attr?: string | null;
}

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

/** The NOTIFY channel that carries the id of each decided command. */
export const outcomeChannel = 'exportd_commands';

const columns = 'id, batch_export_id, team_id, name, body, fingerprint, status, outcome';

interface CommandRequest extends Omit<Command, 'status' | 'outcome'> {
  readonly idempotency_key: string | null;
  readonly user_id: number | null;
}

/**
 * Stores a command as pending, with the trace that it belongs to. If the project has already used the Idempotency-Key,
 * nothing is stored and the first command is returned; the caller compares the fingerprints.
 */
export async function storeCommand(pool: Pool | Connection, request: CommandRequest): Promise<Command> {
  const { rows } = await pool.query<Command>(
    `with inserted as (
       insert into exportd.commands (id, batch_export_id, team_id, name, body, fingerprint, idempotency_key, user_id,
         trace_parent)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing returning ${columns})
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
      activeTraceParent(),
    ],
  );
  const [stored] = rows;
  // Another session may have committed the same key between the halves of the statement. It is visible now.
  return stored ?? storeCommand(pool, request);
}

/** How long an `Idempotency-Key` is remembered, in milliseconds. After that it names a new request. */
export const idempotencyKeyRetentionMs = 7 * 86_400_000;

/** Reads the command that a project stored with this Idempotency-Key. One that is too old loses the key. */
export async function findCommandByIdempotencyKey(
  pool: Pool,
  teamId: number,
  key: string,
): Promise<Command | undefined> {
  const { rows } = await pool.query<Command>(
    `with expired as (
       update exportd.commands set idempotency_key = null
       where team_id = $1 and idempotency_key = $2 and status <> 'pending'
         and created_at < clock_timestamp() - make_interval(secs => $3::float8 / 1000)
       returning id)
     select ${columns} from exportd.commands
     where team_id = $1 and idempotency_key = $2 and id not in (select id from expired)`,
    [teamId, key, idempotencyKeyRetentionMs],
  );
  return rows[0];
}

/** Reads a command by its id. */
export async function readCommand(pool: Pool | Connection, id: string): Promise<Command | undefined> {
  const { rows } = await pool.query<Command>(`select ${columns} from exportd.commands where id = $1`, [id]);
  return rows[0];
}

/** A command that waits for its decision. */
interface PendingCommand {
  readonly id: string;
  readonly name: CommandName;
  /** The trace of the request that stored it, as a W3C `traceparent`. */
  readonly trace_parent: string | null;
}

/** Returns the export's pending commands that this version knows, in the order they were stored. */
export async function readPendingCommands(pool: Pool, batchExportId: string): Promise<PendingCommand[]> {
  const { rows } = await pool.query<PendingCommand>(
    `select id, name, trace_parent from exportd.commands where batch_export_id = $1 and status = 'pending'
       and name = any($2)
     order by position`,
    [batchExportId, commandNames],
  );
  return rows;
}

/** Reads and locks a command if it is pending. */
export async function lockPendingCommand(connection: Connection, id: string): Promise<Command | undefined> {
  const { rows } = await connection.query<Command>(
    `select ${columns} from exportd.commands where id = $1 and status = 'pending' for update`,
    [id],
  );
  return rows[0];
}

/** Records the outcome of a command and notifies the requests that wait for it, when the transaction commits. */
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

/** Withdraws a pending command; false if it has been decided. */
export async function withdrawCommand(pool: Pool, id: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update exportd.commands set status = 'withdrawn', decided_at = clock_timestamp() where id = $1 and status = 'pending'`,
    [id],
  );
  return rowCount === 1;
}

/**
 * Makes a withdrawn command pending again when the client repeats the request with the same Idempotency-Key. Undefined
 * if it is not withdrawn.
 */
export async function requeueWithdrawnCommand(pool: Pool, id: string): Promise<Command | undefined> {
  const { rows } = await pool.query<Command>(
    `update exportd.commands set status = 'pending', decided_at = null where id = $1 and status = 'withdrawn'
     returning ${columns}`,
    [id],
  );
  return rows[0];
}

/** The bounds of times in commands, within which JavaScript and PostgreSQL both write four-digit years. */
const [firstTime, afterTimes] = [Date.parse('1970-01-01T00:00:00Z'), Date.parse('3000-01-01T00:00:00Z')];

/** Offsets of 16 hours and more, which ISO 8601 has and PostgreSQL does not read. */
const longOffset = /[+-](?:1[6-9]|2\d):\d\d$/;

/** A time without seconds, which ISO 8601 has and JavaScript's and PostgreSQL's formats do not. */
const withoutSeconds = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(Z|[+-]\d\d:\d\d)$/;

const invalidTime = 'Must be an ISO 8601 time with an offset, such as 2026-11-01T10:00:00Z.';

/** A time that a user sends: ISO 8601 with an offset. */
export const timestampSchema = z
  .string(invalidTime)
  .overwrite((value) => value.replace(withoutSeconds, '$1:00$2'))
  .check(z.iso.datetime({ offset: true, error: invalidTime }))
  .refine(
    (value) => Date.parse(value) >= firstTime && Date.parse(value) < afterTimes,
    'Must be between the years 1970 and 3000.',
  )
  .overwrite((value) =>
    longOffset.test(value) && !Number.isNaN(Date.parse(value)) ? new Date(value).toISOString() : value,
  );

/** The bodies of the commands that can be sent as manual signals. Unknown fields are ignored, as over HTTP. */
export const commandBodySchemas = {
  pause: z.object({ last_paused_at: timestampSchema.nullish() }),
  unpause: z.object({ backfill: z.boolean().optional() }),
  backfill: z.object({
    start_at: timestampSchema,
    end_at: timestampSchema,
    allow_shrink: z.boolean().optional(),
    only: z.literal('missing').optional(),
    rewrite: z.boolean().optional(),
  }),
  retry: z.object({ run_id: z.uuid() }),
  delete: z.object({}),
} as const;

import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  findByIdempotencyKey,
  readCommand,
  renewCommand,
  storeCommand,
  withdrawCommand,
  type Command,
  type CommandName,
  type CommandOutcome,
} from '../journal/commands.ts';
import { inTransaction, type Connection, type Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { ApiError, invalid } from './api_error.ts';
import type { Caller } from './authentication.ts';
import { cancelledRunsReleased, type RunExecutions } from './cancelled_runs.ts';
import type { CommandOutcomes } from './command_outcomes.ts';
import { refusalError } from './errors.ts';

/** Tells an export's schedule workflow that a command waits for it, and starts the workflow when it is not there. */
export interface Signaller {
  /** Rejects when Temporal cannot be reached. */
  signal(command: {
    readonly id: string;
    readonly batch_export_id: string;
    readonly name: CommandName;
  }): Promise<void>;
}

/** What a request asks for. */
export interface Order {
  readonly name: CommandName;
  readonly caller: Caller;
  /** The header `Idempotency-Key`, or undefined. */
  readonly idempotencyKey: string | undefined;
  /** What makes two requests the same: ids of the path and the body as it was sent. */
  readonly request: unknown;
  /**
   * Checks the request against what is there and names the command's export and body. Runs in the transaction that
   * stores the command, and not at all when an earlier request had the same key.
   */
  readonly prepare: (
    connection: Connection,
  ) => Promise<{ readonly batch_export_id: string; readonly body: Record<string, unknown> }>;
}

/** What became of an order: decided, or accepted and still to be decided. */
export type Ordered = Decided | { readonly decided: false };

/** The outcome of an order. */
export interface Decided {
  readonly decided: true;
  readonly batch_export_id: string;
  readonly outcome: CommandOutcome;
  /** Whether the runs that it cancelled have let go of the bucket and the source; true when it cancelled none. */
  readonly released: boolean;
}

/** Takes orders to the exports' schedules. */
export interface CommandDesk {
  /** @throws ApiError when the order is refused, or when Temporal cannot be reached (it is not carried out then). */
  place(order: Order): Promise<Ordered>;
}

const maximumKeyLength = 255;

/** Commands that end runs: they are answered when those have let go of the bucket and the source. */
const cancelling: ReadonlySet<CommandName> = new Set(['cancelRun', 'cancelBackfill', 'delete']);

/** Opens the desk: checks, stores, signals, and waits for the outcome. */
export function createCommandDesk(deps: {
  readonly pool: Pool;
  readonly signaller: Signaller;
  readonly outcomes: CommandOutcomes;
  readonly executions: RunExecutions;
  readonly logger: Logger;
  readonly timeoutMs: number;
}): CommandDesk {
  const place = async (order: Order): Promise<Ordered> => {
    const deadline = performance.now() + deps.timeoutMs;
    const stored = await storeOnce(deps.pool, order);
    const command = stored.status === 'withdrawn' ? await renew(deps.pool, stored) : stored;
    const decided = command.status === 'pending' ? await signalAndWait(command) : command;
    if (!decided) return { decided: false };
    const answer = answerOf(decided);
    const timeLeft = Math.max(0, deadline - performance.now());
    const released = !cancelling.has(order.name) || (await cancelledRunsReleased(deps, decided.id, timeLeft));
    return { decided: true, ...answer, released };
  };

  /** The decided command, or undefined when it was taken and is not decided yet. */
  const signalAndWait = async (command: Command): Promise<Command | undefined> => {
    const { id, batch_export_id, name } = command;
    const stop = new AbortController();
    const outcome = deps.outcomes.decided(id, deps.timeoutMs, stop.signal);
    const signalled = deps.signaller.signal({ id, batch_export_id, name }).then(
      () => true,
      (error: unknown) => {
        deps.logger.warn({ err: error, command_id: id }, 'a command could not be signalled');
        return false;
      },
    );
    const failed = signalled.then((sent) => (sent ? new Promise<never>(() => undefined) : undefined));
    try {
      const decided = await Promise.race([outcome, failed]);
      if (decided) return decided;
      // The time is up, or the signal failed: one that has been under way all the time counts as failed.
      const sent = await Promise.race([signalled, sleep(0, false)]);
      if (sent || !(await withdrawCommand(deps.pool, id))) return await undecided(deps.pool, id);
      throw new ApiError(
        503,
        'temporal_unreachable',
        'The scheduler cannot be reached. Nothing was changed; try again later.',
        { headers: { 'retry-after': '5' } },
      );
    } finally {
      stop.abort();
    }
  };

  return { place };
}

const renew = async (pool: Pool, withdrawn: Command): Promise<Command> =>
  (await renewCommand(pool, withdrawn.id)) ?? (await readCommand(pool, withdrawn.id)) ?? withdrawn;

/** Reads the command a last time: it may have been decided since it was last looked at. */
async function undecided(pool: Pool, id: string): Promise<Command | undefined> {
  const command = await readCommand(pool, id);
  return command?.status === 'pending' ? undefined : command;
}

function answerOf(command: Command): Pick<Decided, 'batch_export_id' | 'outcome'> {
  const outcome = command.outcome ?? {};
  if (command.status === 'rejected') throw refusalError(outcome);
  if (command.status === 'withdrawn')
    throw new ApiError(503, 'withdrawn', 'The command was taken back before it was carried out.');
  return { batch_export_id: command.batch_export_id, outcome };
}

/** Thrown to roll back what was prepared when another request with the same key was faster. */
class StoredMeanwhile extends Error {
  override readonly name = 'StoredMeanwhile';
  readonly command: Command;
  constructor(command: Command) {
    super('Another request with the same Idempotency-Key was stored meanwhile.');
    this.command = command;
  }
}

async function storeOnce(pool: Pool, order: Order): Promise<Command> {
  const key = order.idempotencyKey ?? null;
  if (key !== null && (key === '' || key.length > maximumKeyLength))
    throw invalid(`An Idempotency-Key has 1 to ${maximumKeyLength} characters.`, null);
  const fingerprint = fingerprintOf(order);
  const earlier = key === null ? undefined : await findByIdempotencyKey(pool, order.caller.project_id, key);
  if (earlier) return assertSame(earlier, fingerprint);
  try {
    return await inTransaction(pool, async (connection) => {
      const { batch_export_id, body } = await order.prepare(connection);
      const id = randomUUID();
      const command = await storeCommand(connection, {
        id,
        batch_export_id,
        team_id: order.caller.project_id,
        name: order.name,
        body,
        fingerprint,
        idempotency_key: key,
        user_id: order.caller.user_id,
      });
      if (command.id !== id) throw new StoredMeanwhile(command);
      return command;
    });
  } catch (error) {
    if (error instanceof StoredMeanwhile) return assertSame(error.command, fingerprint);
    throw error;
  }
}

/** Of the request as it was sent; a hash, since a body may hold secrets. */
const fingerprintOf = (order: Order): string =>
  createHash('sha256')
    .update(JSON.stringify([order.name, order.request]))
    .digest('hex');

function assertSame(command: Command, fingerprint: string): Command {
  if (command.fingerprint === fingerprint) return command;
  throw new ApiError(
    409,
    'idempotency_key_reused',
    'This Idempotency-Key was used before for another request.',
  );
}

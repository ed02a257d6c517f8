import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  findCommandByIdempotencyKey,
  readCommand,
  requeueWithdrawnCommand,
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
import { waitForCancelledRuns, type RunExecutions } from './cancelled_runs.ts';
import type { CommandOutcomes } from './command_outcomes.ts';
import { rejectionError } from './error_handler.ts';

/** Tells an export's schedule workflow that a command waits for it, and starts the workflow when it is not there. */
export interface ScheduleSignaller {
  /** Rejects when Temporal cannot be reached. */
  signal(command: {
    readonly id: string;
    readonly batch_export_id: string;
    readonly name: CommandName;
  }): Promise<void>;
}

/** What a request asks for. */
export interface CommandSubmission {
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
export type SubmissionResult = DecidedSubmission | { readonly decided: false };

/** The outcome of an order. */
export interface DecidedSubmission {
  readonly decided: true;
  readonly batch_export_id: string;
  readonly outcome: CommandOutcome;
  /** Whether the runs that it cancelled have let go of the bucket and the source; true when it cancelled none. */
  readonly executionsClosed: boolean;
}

/** Takes orders to the exports' schedules. */
export interface CommandService {
  /** @throws ApiError when the order is refused, or when Temporal cannot be reached (it is not carried out then). */
  submit(submission: CommandSubmission): Promise<SubmissionResult>;
}

const maxKeyLength = 255;

/** Commands that end runs: they are answered when those have let go of the bucket and the source. */
const commandsThatCancelRuns: ReadonlySet<CommandName> = new Set(['cancelRun', 'cancelBackfill', 'delete']);

/** Opens the desk: checks, stores, signals, and waits for the outcome. */
export function createCommandService(deps: {
  readonly pool: Pool;
  readonly signaller: ScheduleSignaller;
  readonly outcomes: CommandOutcomes;
  readonly executions: RunExecutions;
  readonly logger: Logger;
  readonly timeoutMs: number;
}): CommandService {
  const submit = async (submission: CommandSubmission): Promise<SubmissionResult> => {
    const deadline = performance.now() + deps.timeoutMs;
    const stored = await storeOnce(deps.pool, submission);
    const command = stored.status === 'withdrawn' ? await renewWithdrawn(deps.pool, stored) : stored;
    const decided = command.status === 'pending' ? await signalAndWait(command) : command;
    if (!decided) return { decided: false };
    const decidedOutcome = outcomeOf(decided);
    const timeLeft = Math.max(0, deadline - performance.now());
    const executionsClosed =
      !commandsThatCancelRuns.has(submission.name) ||
      (await waitForCancelledRuns(deps, decided.id, timeLeft));
    return { decided: true, ...decidedOutcome, executionsClosed };
  };

  /** The decided command, or undefined when it was taken and is not decided yet. */
  const signalAndWait = async (command: Command): Promise<Command | undefined> => {
    const { id, batch_export_id, name } = command;
    const stop = new AbortController();
    const outcome = deps.outcomes.waitUntilDecided(id, deps.timeoutMs, stop.signal);
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
      if (sent || !(await withdrawCommand(deps.pool, id))) return await readIfDecided(deps.pool, id);
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

  return { submit };
}

const renewWithdrawn = async (pool: Pool, withdrawn: Command): Promise<Command> =>
  (await requeueWithdrawnCommand(pool, withdrawn.id)) ?? (await readCommand(pool, withdrawn.id)) ?? withdrawn;

/** Reads the command a last time: it may have been decided since it was last looked at. */
async function readIfDecided(pool: Pool, id: string): Promise<Command | undefined> {
  const command = await readCommand(pool, id);
  return command?.status === 'pending' ? undefined : command;
}

function outcomeOf(command: Command): Pick<DecidedSubmission, 'batch_export_id' | 'outcome'> {
  const outcome = command.outcome ?? {};
  if (command.status === 'rejected') throw rejectionError(outcome);
  if (command.status === 'withdrawn')
    throw new ApiError(503, 'withdrawn', 'The command was taken back before it was carried out.');
  return { batch_export_id: command.batch_export_id, outcome };
}

/** Thrown to roll back what was prepared when another request with the same key was faster. */
class ConcurrentSubmission extends Error {
  override readonly name = 'StoredMeanwhile';
  readonly command: Command;
  constructor(command: Command) {
    super('Another request with the same Idempotency-Key was stored meanwhile.');
    this.command = command;
  }
}

async function storeOnce(pool: Pool, submission: CommandSubmission): Promise<Command> {
  const key = submission.idempotencyKey ?? null;
  if (key !== null && (key === '' || key.length > maxKeyLength))
    throw invalid(`An Idempotency-Key has 1 to ${maxKeyLength} characters.`, null);
  const fingerprint = fingerprintOf(submission);
  const earlier =
    key === null ? undefined : await findCommandByIdempotencyKey(pool, submission.caller.project_id, key);
  if (earlier) return requireSameRequest(earlier, fingerprint);
  try {
    return await inTransaction(pool, async (connection) => {
      const { batch_export_id, body } = await submission.prepare(connection);
      const id = randomUUID();
      const command = await storeCommand(connection, {
        id,
        batch_export_id,
        team_id: submission.caller.project_id,
        name: submission.name,
        body,
        fingerprint,
        idempotency_key: key,
        user_id: submission.caller.user_id,
      });
      if (command.id !== id) throw new ConcurrentSubmission(command);
      return command;
    });
  } catch (error) {
    if (error instanceof ConcurrentSubmission) return requireSameRequest(error.command, fingerprint);
    throw error;
  }
}

/** Of the request as it was sent; a hash, since a body may hold secrets. */
const fingerprintOf = (submission: CommandSubmission): string =>
  createHash('sha256')
    .update(JSON.stringify([submission.name, submission.request]))
    .digest('hex');

function requireSameRequest(command: Command, fingerprint: string): Command {
  if (command.fingerprint === fingerprint) return command;
  throw new ApiError(
    409,
    'idempotency_key_reused',
    'This Idempotency-Key was used before for another request.',
  );
}

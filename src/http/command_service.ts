import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { isInvalidRequest } from '../failures/grpc_errors.ts';
import {
  type Command,
  type CommandName,
  type CommandOutcome,
  findCommandByIdempotencyKey,
  readCommand,
  requeueWithdrawnCommand,
  storeCommand,
  withdrawCommand,
} from '../journal/commands.ts';
import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { SearchAttributesMissing } from '../temporal/search_attributes.ts';
import { inSpan } from '../tracing/spans.ts';
import { ApiError, invalid, temporalUnreachable } from './api_error.ts';
import { type RunExecutions, waitForCancelledRuns } from './cancelled_runs.ts';
import type { CommandOutcomes } from './command_outcomes.ts';
import { type Caller, callerOf } from './plugins/authentication.ts';
import { rejectionError } from './plugins/errors.ts';

/** Signals an export's schedule workflow that a command is pending, and starts the workflow if it is not running. */
export interface ScheduleSignaller {
  /** Rejects when Temporal cannot be reached. */
  signal(command: {
    readonly id: string;
    readonly batch_export_id: string;
    readonly name: CommandName;
  }): Promise<void>;
}

/** A command that a request submits. */
interface CommandSubmission {
  readonly name: CommandName;
  readonly caller: Caller;
  /** The header `Idempotency-Key`, or undefined. */
  readonly idempotencyKey: string | undefined;
  /** What two requests with the same key must have in common: the ids of the path and the body as sent. */
  readonly request: unknown;
  /**
   * Checks the request against the current state, and returns the command's export and body. Runs in the transaction
   * that stores the command; skipped when an earlier request had the same key.
   */
  readonly prepare: (
    connection: Connection,
  ) => Promise<{ readonly batch_export_id: string; readonly body: Record<string, unknown> }>;
  /** How long to wait for the outcome, if not as long as for others. */
  readonly timeoutMs?: number;
}

/** The result of a submission: decided, or stored and still pending. */
export type SubmissionResult = DecidedSubmission | PendingSubmission;

/** A command that is stored and will be decided later. */
interface PendingSubmission {
  readonly decided: false;
  readonly batch_export_id: string;
}

/** The outcome of a decided command. */
interface DecidedSubmission {
  readonly decided: true;
  readonly batch_export_id: string;
  readonly outcome: CommandOutcome;
  /** Ids of the runs that it cancelled and whose executions may still be open. */
  readonly stoppingRuns: readonly string[];
}

/** Submits commands to the exports' schedules. */
export interface CommandService {
  /** @throws ApiError when the command is rejected, or when Temporal cannot be reached (the command is then withdrawn). */
  submit(submission: CommandSubmission): Promise<SubmissionResult>;
}

const maxKeyLength = 255;

/** Their responses wait until the executions of the cancelled runs are closed. */
const commandsThatCancelRuns: ReadonlySet<CommandName> = new Set(['cancelRun', 'cancelBackfill', 'delete']);

/** Creates the service, which checks and stores a command, signals its schedule and waits for the outcome. */
export function createCommandService(dependencies: {
  readonly pool: Pool;
  readonly signaller: ScheduleSignaller;
  readonly outcomes: CommandOutcomes;
  readonly executions: RunExecutions;
  readonly logger: Logger;
  readonly timeoutMs: number;
  readonly requestKeys: readonly Buffer[];
}): CommandService {
  const submit = (submission: CommandSubmission): Promise<SubmissionResult> =>
    inSpan(`command ${submission.name}`, {}, () => storeAndWait(submission));

  const storeAndWait = async (submission: CommandSubmission): Promise<SubmissionResult> => {
    const timeoutMs = submission.timeoutMs ?? dependencies.timeoutMs;
    const deadline = performance.now() + timeoutMs;
    const stored = await storeOnce(dependencies, submission);
    const command = stored.status === 'withdrawn' ? await renewWithdrawn(dependencies.pool, stored) : stored;
    const decided = command.status === 'pending' ? await signalAndWait(command, timeoutMs) : command;
    if (!decided) return { decided: false, batch_export_id: command.batch_export_id };
    const decidedOutcome = outcomeOf(decided);
    const timeLeft = Math.max(0, deadline - performance.now());
    const stoppingRuns = commandsThatCancelRuns.has(submission.name)
      ? await waitForCancelledRuns(dependencies, decided.id, timeLeft)
      : [];
    return { decided: true, ...decidedOutcome, stoppingRuns };
  };

  /** Resolves with the decided command, or undefined when it is still pending after the timeout. */
  const signalAndWait = async (command: Command, timeoutMs: number): Promise<Command | undefined> => {
    const { id, batch_export_id, name } = command;
    const stop = new AbortController();
    const outcome = dependencies.outcomes.waitUntilDecided(id, timeoutMs, stop.signal);
    const signalled = dependencies.signaller.signal({ id, batch_export_id, name }).then(
      () => true,
      (error: unknown) => {
        dependencies.logger.warn(
          { err: error, command_id: id },
          'Could not signal the schedule of a command.',
        );
        // Temporal responded, but has to be set up. The reconciler signals the command again once a worker runs.
        return error instanceof SearchAttributesMissing || isInvalidRequest(error);
      },
    );
    const failed = signalled.then((sent) => (sent ? new Promise<never>(() => undefined) : undefined));
    try {
      const decided = await Promise.race([outcome, failed]);
      if (decided) return decided;
      // The timeout has passed or the signal failed; a pending signal is treated as failed.
      const sent = await Promise.race([signalled, sleep(0, false)]);
      if (sent || !(await withdrawCommand(dependencies.pool, id)))
        return await readIfDecided(dependencies.pool, id);
      throw temporalUnreachable('Nothing was changed.');
    } finally {
      stop.abort();
    }
  };

  return { submit };
}

const renewWithdrawn = async (pool: Pool, withdrawn: Command): Promise<Command> =>
  (await requeueWithdrawnCommand(pool, withdrawn.id)) ?? (await readCommand(pool, withdrawn.id)) ?? withdrawn;

/** Reads the command a last time, since it may have been decided after the last poll. */
async function readIfDecided(pool: Pool, id: string): Promise<Command | undefined> {
  const command = await readCommand(pool, id);
  return command?.status === 'pending' ? undefined : command;
}

function outcomeOf(command: Command): Pick<DecidedSubmission, 'batch_export_id' | 'outcome'> {
  const outcome = command.outcome ?? {};
  if (command.status === 'rejected') throw rejectionError(outcome);
  if (command.status === 'withdrawn')
    throw new ApiError(
      503,
      'withdrawn',
      'The command was withdrawn before it was applied. Retry the request.',
    );
  return { batch_export_id: command.batch_export_id, outcome };
}

/** Rolls back the transaction when a concurrent request with the same key stored its command first. */
class ConcurrentSubmission extends Error {
  override readonly name = 'ConcurrentSubmission';
  readonly command: Command;
  constructor(command: Command) {
    super('A concurrent request with the same Idempotency-Key was stored first.');
    this.command = command;
  }
}

async function storeOnce(
  {
    pool,
    requestKeys,
  }: {
    readonly pool: Pool;
    readonly requestKeys: readonly Buffer[];
  },
  submission: CommandSubmission,
): Promise<Command> {
  const key = submission.idempotencyKey ?? null;
  if (key !== null && (key === '' || key.length > maxKeyLength))
    throw invalid(`Idempotency-Key must have 1 to ${maxKeyLength} characters, but has ${key.length}.`, null);
  // Only a repeated key is ever compared.
  const fingerprints = key === null ? [''] : fingerprintsOf(submission, requestKeys);
  const earlier =
    key === null ? undefined : await findCommandByIdempotencyKey(pool, submission.caller.project_id, key);
  if (earlier) return requireSameRequest(earlier, fingerprints);
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
        fingerprint: fingerprints[0] ?? '',
        idempotency_key: key,
        user_id: submission.caller.actor_id,
      });
      if (command.id !== id) throw new ConcurrentSubmission(command);
      return command;
    });
  } catch (error) {
    if (error instanceof ConcurrentSubmission) return requireSameRequest(error.command, fingerprints);
    throw error;
  }
}

/**
 * What identifies the request as sent, by each key of the ring, the first one first. A body can contain secrets, and a plain
 * hash of a weak one could be guessed from a dump of the database.
 */
function fingerprintsOf(submission: CommandSubmission, keys: readonly Buffer[]): readonly string[] {
  const text = JSON.stringify([submission.name, submission.request]);
  return keys.map((key) => createHmac('sha256', key).update(text).digest('base64url'));
}

function requireSameRequest(command: Command, fingerprints: readonly string[]): Command {
  if (fingerprints.includes(command.fingerprint)) return command;
  throw new ApiError(
    409,
    'idempotency_key_reused',
    'This Idempotency-Key was already used for a different request. Use a new key.',
  );
}

/** The body of a 202 response to a command that is still pending. */
export const acceptedDetail = {
  detail: 'The request was accepted and is still being applied. Read the resource again in a few seconds.',
};

/** The header `Idempotency-Key`. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key'];
  return Array.isArray(key) ? key.join(', ') : key;
}

/** Submits a command for the caller of the request. */
export function submitCommand(
  { commandService }: { readonly commandService: CommandService },
  request: FastifyRequest,
  name: CommandName,
  prepare: CommandSubmission['prepare'],
): Promise<SubmissionResult> {
  return commandService.submit({
    name,
    caller: callerOf(request),
    idempotencyKey: idempotencyKeyOf(request),
    request: { path: request.params, body: request.body },
    prepare,
  });
}

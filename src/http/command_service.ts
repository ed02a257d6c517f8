import { createHmac, randomUUID } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { forEachConcurrently } from '../concurrency/keyed_semaphore.ts';
import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { EncoderPool } from '../encoding/encoder.ts';
import { isInvalidRequest } from '../failures/grpc_errors.ts';
import {
  type Command,
  type CommandName,
  type CommandOutcome,
  findCommandByIdempotencyKey,
  outcomeChannel,
  readCommand,
  requeueWithdrawnCommand,
  storeCommand,
  withdrawCommand,
} from '../journal/commands.ts';
import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import type { QueryService } from '../queries/handle_query.ts';
import { ClientDisconnected } from '../queries/query_errors.ts';
import type { QueryRateLimiter } from '../queries/query_slots.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { VerificationClient } from '../temporal/clients/verification_client.ts';
import { SearchAttributesMissing } from '../temporal/search_attributes.ts';
import { inSpan } from '../tracing/spans.ts';
import { ApiError, invalid, temporalUnreachable } from './api_error.ts';
import { type Caller, callerOf } from './authentication.ts';
import type { DryRunService } from './backfills/dry_run.ts';
import type { DestinationTestService } from './batch_exports/test_destination.ts';
import { rejectionError } from './error_handler.ts';
import type { RequestShares } from './request_shares.ts';
import type { ExportLink, RunLink } from './runs/read_model.ts';
import type { ResendService, WebhookTestService } from './webhooks/requested_deliveries.ts';

/** Waits for the outcomes of commands. */
interface CommandOutcomes {
  /**
   * Resolves with the command once it is no longer pending, or with undefined after `timeoutMs` or when `signal` aborts.
   * Listens from the call on: call it before signalling the schedule.
   */
  waitUntilDecided(id: string, timeoutMs: number, signal: AbortSignal): Promise<Command | undefined>;
  close(): Promise<void>;
}

/** Delay before reconnecting after the listening connection was lost or could not be opened. */
const relistenMs = 1_000;

/** How often waiting requests poll for an outcome, in case a notification is lost, in milliseconds. */
const pollMs = 500;

/**
 * Listens for outcomes on one connection of the pool, which it holds until it is closed. Polling covers notifications
 * that are lost with a connection.
 */
export function createCommandOutcomes(pool: Pool, logger: Logger): CommandOutcomes {
  const waiters = new Map<string, Set<() => void>>();
  const closing = new AbortController();

  const listen = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await listenUntilLost(pool, closing.signal, (id) => {
        for (const wake of waiters.get(id) ?? []) wake();
      }).catch((error: unknown) => {
        logger.warn(
          { err: error },
          'Could not listen for command outcomes. Polling until the connection is back.',
        );
      });
      await sleep(relistenMs, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  };
  const listening = listen();

  const waitUntilDecided: CommandOutcomes['waitUntilDecided'] = async (id, timeoutMs, signal) => {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const wake = subscribe(waiters, id);
      try {
        const command = await readCommand(pool, id);
        if (command && command.status !== 'pending') return command;
        const remaining = deadline - performance.now();
        if (remaining <= 0 || signal.aborted) return undefined;
        const timer = new AbortController();
        const poll = sleep(Math.min(pollMs, remaining), undefined, {
          signal: AbortSignal.any([timer.signal, signal]),
        }).catch(() => undefined);
        await Promise.race([wake.promise, poll]);
        timer.abort();
      } finally {
        wake.forget();
      }
    }
  };

  return {
    waitUntilDecided,
    close: async () => {
      closing.abort();
      await listening;
    },
  };
}

/** `promise` resolves with the next notification of the id. */
function subscribe(waiters: Map<string, Set<() => void>>, id: string) {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const wake = () => resolve(undefined);
  const waiting = waiters.get(id) ?? new Set();
  waiters.set(id, waiting.add(wake));
  const forget = () => {
    waiting.delete(wake);
    if (waiting.size === 0 && waiters.get(id) === waiting) waiters.delete(id);
  };
  return { promise, forget };
}

async function listenUntilLost(
  pool: Pool,
  closing: AbortSignal,
  onNotified: (id: string) => void,
): Promise<void> {
  const connection = await pool.connect();
  const { promise: lost, resolve, reject } = Promise.withResolvers<undefined>();
  const onNotification = ({ payload }: { payload?: string | undefined }) => onNotified(payload ?? '');
  const onClosing = () => resolve(undefined);
  connection.on('notification', onNotification);
  connection.once('error', reject);
  connection.once('end', onClosing);
  closing.addEventListener('abort', onClosing);
  // Handled right away: the connection can break during LISTEN.
  lost.catch(() => undefined);
  try {
    await connection.query(`listen ${outcomeChannel}`);
    if (!closing.aborted) await lost;
  } finally {
    connection.off('notification', onNotification);
    closing.removeEventListener('abort', onClosing);
    connection.release(true);
  }
}

/** An export may have hundreds of active runs, and each is polled several times a second. */
const maxPolledRuns = 8;

/** A cancelled run, with what identifies its workflow execution. */
interface CancelledRun {
  readonly run_id: string;
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
}

/** Observes the workflow executions of runs. */
export interface RunExecutions {
  /**
   * Waits at most `timeoutMs` until the execution of the run is closed.
   * @returns false when it is still open. Rejects when Temporal cannot be reached.
   */
  waitUntilClosed(run: CancelledRun, timeoutMs: number): Promise<boolean>;
}

/**
 * Waits at most `timeoutMs` until the executions of the runs that a command cancelled are closed. The journal records a
 * run as Cancelled immediately; the worker that exports it learns of it with its next heartbeat and may write until then.
 * @returns the ids of the runs whose executions may still be open.
 */
async function waitForCancelledRuns(
  dependencies: { readonly pool: Pool; readonly executions: RunExecutions; readonly logger: Logger },
  commandId: string,
  timeoutMs: number,
): Promise<string[]> {
  const deadline = performance.now() + timeoutMs;
  const runs = await runsCancelledSince(dependencies.pool, commandId);
  const open = new Set(runs.map(({ run_id }) => run_id));
  let areClosed = true;
  // They close at about the same time, so few of them have to be polled.
  await forEachConcurrently(runs, maxPolledRuns, async (run) => {
    if (!areClosed) return;
    const timeLeft = Math.max(0, deadline - performance.now());
    const isClosed = await dependencies.executions.waitUntilClosed(run, timeLeft).catch((error: unknown) => {
      dependencies.logger.warn(
        { err: error, run_id: run.run_id },
        'Could not read whether the execution of a cancelled run is closed.',
      );
      return false;
    });
    if (isClosed) open.delete(run.run_id);
    areClosed &&= isClosed;
  });
  return [...open];
}

/** The runs of the command's export cancelled since the command was stored, which include those that it cancelled. */
async function runsCancelledSince(pool: Pool, commandId: string): Promise<CancelledRun[]> {
  const { rows } = await pool.query<CancelledRun>(
    `select run.id as run_id, run.batch_export_id, run.data_interval_start, run.data_interval_end
     from exportd.commands command
     join exportd.batch_export_runs run on run.batch_export_id = command.batch_export_id
     where command.id = $1 and run.status = 'Cancelled' and run.finished_at >= command.created_at`,
    [commandId],
  );
  return rows;
}

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
interface CommandService {
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

/** The application, with request and response types derived from their schemas. */
export type HttpApp = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** What the routes of a project use. */
export interface RouteContext
  extends DryRunService, DestinationTestService, WebhookTestService, ResendService {
  readonly settings: Settings;
  readonly keyRing: KeyRing;
  readonly commandService: CommandService;
  readonly queries: QueryService;
  readonly queryRateLimiter: QueryRateLimiter;
  readonly runLink: RunLink;
  readonly exportLink: ExportLink;
  /** Encodes rows of previews in a thread. */
  readonly encoders: EncoderPool;
  readonly shares: RequestShares;
  readonly verifications: VerificationClient;
  readonly logger: Logger;
}

/** Adds routes below `/api/<root>/:project_id`. */
export type ProjectRoutes = (app: HttpApp, context: RouteContext) => void;

/** Options of routes, with the scope that they require. */
export const readsExports = { config: { scope: 'batch_export:read' } } as const;
export const writesExports = { config: { scope: 'batch_export:write' } } as const;
export const readsQueries = { config: { scope: 'query:read' } } as const;

/** The project in the path, which the caller's key covers. */
export const teamOf = (request: FastifyRequest): number => callerOf(request).project_id;

/** The body of a 202 response to a command that is still pending. */
export const acceptedDetail = {
  detail: 'The request was accepted and is still being applied. Read the resource again in a few seconds.',
};

/** How many runs a message names. */
const maxNamedRuns = 5;

/**
 * The body of a 202 response when cancelled runs may still be writing; `what` says what was done. A worker learns of the
 * cancellation with its next heartbeat, and one that sends none loses the run after the heartbeat timeout.
 */
export function stillStoppingDetail(
  what: string,
  runIds: readonly string[],
  { EXPORTD_HEARTBEAT_TIMEOUT: timeoutMs }: Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT'>,
): { detail: string } {
  const named = runIds.slice(0, maxNamedRuns).join(', ');
  const others = runIds.length > maxNamedRuns ? ` and ${runIds.length - maxNamedRuns} more` : '';
  const until = new Date(Date.now() + timeoutMs).toISOString();
  return {
    detail: `${what}; workers have not confirmed yet that they stopped run ${named}${others}, so data can still reach the bucket. They stop by ${until}.`,
  };
}

/** The part of a command's body that lets its runs shrink their intervals; empty when it is not requested. */
export const allowsShrink = ({
  allow_shrink,
}: {
  readonly allow_shrink?: boolean | null | undefined;
}): { allow_shrink?: true } => (allow_shrink === true ? { allow_shrink } : {});

/** The header `Idempotency-Key`. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key'];
  return Array.isArray(key) ? key.join(', ') : key;
}

/** Submits a command for the caller of the request. */
export function submitCommand(
  context: RouteContext,
  request: FastifyRequest,
  name: CommandName,
  prepare: CommandSubmission['prepare'],
): Promise<SubmissionResult> {
  return context.commandService.submit({
    name,
    caller: callerOf(request),
    idempotencyKey: idempotencyKeyOf(request),
    request: { path: request.params, body: request.body },
    prepare,
  });
}

/** Sends 200 without a body. */
export const sendEmpty = (reply: FastifyReply, location?: string): FastifyReply =>
  (location === undefined ? reply : reply.header('location', location)).code(200).send();

/** Parses a parameter that can be repeated or comma-separated. @throws ApiError 400 that names the parameter. */
export function parseChoices<Value extends string>(
  parameter: string,
  given: string | string[] | undefined,
  allowed: readonly Value[],
  read: (text: string) => string = (text) => text,
): Value[] | undefined {
  if (given === undefined) return undefined;
  return [given].flat().flatMap((text) =>
    text.split(',').map((part) => {
      const value = allowed.find((choice) => choice === read(part.trim()));
      if (value === undefined)
        throw invalid(`"${part.trim()}" is invalid. Must be one of: ${allowed.join(', ')}.`, parameter);
      return value;
    }),
  );
}

/**
 * A signal that is aborted with ClientDisconnected when the connection closes before the response has been sent. Not
 * Fastify's `request.signal`: the request closes when its body has been read.
 */
export function disconnectSignal(reply: FastifyReply): AbortSignal {
  const disconnected = new AbortController();
  const onClose = (): void => {
    if (!reply.raw.writableFinished) disconnected.abort(new ClientDisconnected());
  };
  reply.raw.once('close', onClose);
  if (reply.raw.destroyed) onClose();
  return disconnected.signal;
}

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { CommandName } from '../journal/commands.ts';
import type { QueryService } from '../queries/handle_query.ts';
import { ClientDisconnected } from '../queries/query_errors.ts';
import type { QueryRateLimiter } from '../queries/query_slots.ts';
import type { VerificationClient } from '../temporal/clients/verification_client.ts';
import { invalid } from './api_error.ts';
import { callerOf } from './accounts.ts';
import type { DryRunService } from './backfills/dry_run.ts';
import type { DestinationTestService } from './batch_exports/test_destination.ts';
import type { CommandService, CommandSubmission, SubmissionResult } from './command_service.ts';
import type { LiveChanges } from './console/live_changes.ts';
import type { RunLink } from './runs/read_model.ts';
import type { ResendService, WebhookTestService } from './webhooks/requested_deliveries.ts';

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
  readonly liveChanges: LiveChanges;
  readonly verifications: VerificationClient;
}

/** Adds routes below `/api/<root>/:project_id`. */
export type ProjectRoutes = (app: HttpApp, context: RouteContext) => void;

/** Options of routes, with the scope that they require. */
export const readsExports = { config: { scope: 'batch_export:read' } } as const;
export const writesExports = { config: { scope: 'batch_export:write' } } as const;
export const readsQueries = { config: { scope: 'query:read' } } as const;

/** The project of the caller's key, which is also the project in the path. */
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

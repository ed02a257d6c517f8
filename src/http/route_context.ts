import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { CommandName } from '../journal/commands.ts';
import { invalid } from './api_error.ts';
import { callerOf } from './authentication.ts';
import type { CommandService, CommandSubmission, SubmissionResult } from './command_service.ts';
import type { DestinationTestService } from './test_destination.ts';
import type { DryRunService } from './dry_run.ts';
import type { QueryService } from '../queries/query_service.ts';
import type { RunLink } from './read_models/runs.ts';
import type { WebhookTestService } from './test_webhook.ts';

/** The application, with types of requests and answers from their schemas. */
export type HttpApp = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** What the routes of a project work with. */
export interface RouteContext extends DryRunService, DestinationTestService, WebhookTestService {
  readonly settings: Settings;
  readonly keyRing: KeyRing;
  readonly commandService: CommandService;
  readonly queries: QueryService;
  readonly runLink: RunLink;
}

/** Adds routes below `/api/<root>/:project_id`. */
export type ProjectRoutes = (app: HttpApp, context: RouteContext) => void;

/** The project that the caller's key is for, which is also the one in the path. */
export const teamOf = (request: FastifyRequest): number => callerOf(request).project_id;

/** What the answer says of a command that is carried out later. */
export const acceptedDetail = {
  detail: 'The request was accepted and will be carried out; ask again in a moment.',
};

/** What the answer says when something ended whose runs may still be at work: `what` in the words of the interface. */
export const stillStoppingDetail = (what: string) => ({
  detail: `${what}; the worker that was exporting has not said yet that it let go, so what it was sending may still reach the bucket.`,
});

/** Places an order in the name of the request's caller. */
export function submitCommand(
  context: RouteContext,
  request: FastifyRequest,
  name: CommandName,
  prepare: CommandSubmission['prepare'],
): Promise<SubmissionResult> {
  const key = request.headers['idempotency-key'];
  return context.commandService.submit({
    name,
    caller: callerOf(request),
    idempotencyKey: Array.isArray(key) ? key.join(', ') : key,
    request: { path: request.params, body: request.body },
    prepare,
  });
}

/** Answers 200 without a body. */
export const sendEmpty = (reply: FastifyReply, location?: string): FastifyReply =>
  (location === undefined ? reply : reply.header('location', location)).code(200).send();

/** The values of a parameter that may be repeated. @throws ApiError 400 that names the parameter. */
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
        throw invalid(
          `"${part.trim()}" is not a valid choice. Choices are: ${allowed.join(', ')}.`,
          parameter,
        );
      return value;
    }),
  );
}

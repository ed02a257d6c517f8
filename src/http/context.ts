import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { CommandName } from '../journal/commands.ts';
import { invalid } from './api_error.ts';
import { callerOf } from './authentication.ts';
import type { CommandDesk, Order, Ordered } from './commands.ts';
import type { DestinationTestDesk } from './destination_test.ts';
import type { DryRunDesk } from './dry_run.ts';
import type { QueryDesk } from '../queries/query_desk.ts';
import type { RunLink } from './reading/runs.ts';
import type { WebhookTestDesk } from './webhook_test.ts';

/** The application, with types of requests and answers from their schemas. */
export type HttpApp = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** What the routes of a project work with. */
export interface RouteContext extends DryRunDesk, DestinationTestDesk, WebhookTestDesk {
  readonly settings: Settings;
  readonly keyRing: KeyRing;
  readonly desk: CommandDesk;
  readonly queries: QueryDesk;
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
export const unreleasedDetail = (what: string) => ({
  detail: `${what}; the worker that was exporting has not said yet that it let go, so what it was sending may still reach the bucket.`,
});

/** Places an order in the name of the request's caller. */
export function placeOrder(
  context: RouteContext,
  request: FastifyRequest,
  name: CommandName,
  prepare: Order['prepare'],
): Promise<Ordered> {
  const key = request.headers['idempotency-key'];
  return context.desk.place({
    name,
    caller: callerOf(request),
    idempotencyKey: Array.isArray(key) ? key.join(', ') : key,
    request: { path: request.params, body: request.body },
    prepare,
  });
}

/** Answers 200 without a body. */
export const answerNothing = (reply: FastifyReply, location?: string): FastifyReply =>
  (location === undefined ? reply : reply.header('location', location)).code(200).send();

/** The values of a parameter that may be repeated. @throws ApiError 400 that names the parameter. */
export function chosen<Value extends string>(
  parameter: string,
  given: string | string[] | undefined,
  allowed: readonly Value[],
  read: (text: string) => string = (text) => text,
): Value[] | undefined {
  if (given === undefined) return undefined;
  return [given].flat().flatMap((text) =>
    text.split(',').map((part) => {
      const value = allowed.find((one) => one === read(part.trim()));
      if (value === undefined)
        throw invalid(
          `"${part.trim()}" is not a valid choice. Choices are: ${allowed.join(', ')}.`,
          parameter,
        );
      return value;
    }),
  );
}

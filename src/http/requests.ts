import type { FastifyReply, FastifyRequest } from 'fastify';
import { ClientDisconnected } from '../concurrency/client_disconnected.ts';
import { invalid } from './api_error.ts';
import { callerOf } from './plugins/authentication.ts';

/** Options of routes, with the scope that they require. */
export const readsExports = { config: { scope: 'batch_export:read' } } as const;
export const writesExports = { config: { scope: 'batch_export:write' } } as const;
export const readsSource = { config: { scope: 'source:read' } } as const;
export const readsQueries = { config: { scope: 'query:read' } } as const;
export const writesQueries = { config: { scope: 'query:write' } } as const;

/** The project in the path, which the caller's key covers. */
export const teamOf = (request: FastifyRequest): number => callerOf(request).project_id;

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

import type { FastifyReply } from 'fastify';
import { ClientDisconnected } from '../queries/query_errors.ts';

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

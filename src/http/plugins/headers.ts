import type { FastifyInstance } from 'fastify';
import type { Settings } from '../../config/settings.ts';

/** How long browsers use https alone once they have, in seconds: a year. */
const httpsSeconds = 31_536_000;

/** Adds the headers that every response has. */
export function addSecurityHeaders(
  app: FastifyInstance,
  { EXPORTD_BASE_URL }: Pick<Settings, 'EXPORTD_BASE_URL'>,
): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    // Files of the console have names that change with their content, and say so.
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store');
    reply.header('x-content-type-options', 'nosniff');
    if (request.protocol === 'https' || EXPORTD_BASE_URL?.startsWith('https:') === true)
      reply.header('strict-transport-security', `max-age=${httpsSeconds}`);
    done(null, payload);
  });
}

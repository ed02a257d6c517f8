import { ApiError, retryAfter } from '../api_error.ts';
import { callerOf } from '../authentication.ts';
import { type HttpApp, readsExports, type RouteContext } from '../command_service.ts';

/** Proxies close connections that stay silent. */
const heartbeatMs = 15_000;
/** Then the browser connects again, which checks the key again. */
const maxDurationMs = 15 * 60_000;
/** Each holds a connection. */
const maxClients = 500;
/** A client that reads more slowly than this many bytes pile up is disconnected. It connects again and reads everything. */
const maxUnsentBytes = 1_048_576;

/** Sends the console what changes in the project, as server-sent events. */
export function consoleLiveRoutes(app: HttpApp, { liveChanges }: RouteContext): void {
  let clients = 0;
  app.get(
    '/console/live',
    // HEAD would hold a connection too.
    { schema: { hide: true }, ...readsExports, exposeHeadRoute: false },
    (request, reply) => {
      if (clients >= maxClients)
        throw new ApiError(
          503,
          'unavailable',
          'Too many consoles are open. They are updated by polling.',
          retryAfter(60),
        );
      clients += 1;
      reply.hijack();
      const { raw } = reply;
      raw.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        // nginx collects responses by default.
        'x-accel-buffering': 'no',
      });
      raw.write('retry: 3000\n\n');
      const heartbeat = setInterval(() => raw.write(': still here\n\n'), heartbeatMs);
      const deadline = setTimeout(() => raw.end(), maxDurationMs);
      const unsubscribe = liveChanges.subscribe(
        callerOf(request),
        (change) => {
          if (raw.writableLength > maxUnsentBytes) raw.destroy();
          else raw.write(`event: changed\ndata: ${JSON.stringify(change)}\n\n`);
        },
        () => raw.end(),
      );
      raw.on('error', () => raw.destroy());
      raw.on('close', () => {
        clients -= 1;
        clearInterval(heartbeat);
        clearTimeout(deadline);
        unsubscribe();
      });
    },
  );
}

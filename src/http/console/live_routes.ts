import { createKeyedSemaphore } from '../../concurrency/keyed_semaphore.ts';
import { bounds, boundText } from '../../config/bounds.ts';
import { ApiError, retryAfter } from '../api_error.ts';
import { callerOf } from '../authentication.ts';
import { type HttpApp, readsExports, type RouteContext } from '../command_service.ts';

/** Proxies close connections that stay silent. */
const heartbeatMs = 15_000;
/** Then the browser connects again, which checks the key again. */
const maxDurationMs = 15 * 60_000;
/** When a client that has too many streams may connect again. */
const retrySeconds = 60;
/** A client that reads more slowly than this many bytes pile up is disconnected. It connects again and reads everything. */
const maxUnsentBytes = 1_048_576;

/** Sends the console what changes in the project, as server-sent events. */
export function consoleLiveRoutes(app: HttpApp, { liveChanges }: RouteContext): void {
  // Each holds a connection.
  const streams = createKeyedSemaphore<number, string>({
    total: bounds.liveStreams.max,
    perKey: bounds.liveStreamsOfProject.max,
    perMember: bounds.liveStreamsOfKey.max,
  });
  const tooMany = (status: 429 | 503, whose: string): ApiError =>
    new ApiError(
      status,
      status === 429 ? 'throttled' : 'unavailable',
      `${whose} Consoles without one are updated by polling.`,
      retryAfter(retrySeconds),
    );
  app.get(
    '/console/live',
    // HEAD would hold a connection too.
    { schema: { hide: true }, ...readsExports, exposeHeadRoute: false },
    (request, reply) => {
      const { project_id, key_id } = callerOf(request);
      const release = streams.tryAcquire(project_id, key_id);
      if (!release)
        switch (streams.exceeded(project_id, key_id)) {
          case 'member':
            throw tooMany(429, `An API key has at most ${boundText(bounds.liveStreamsOfKey)} live streams.`);
          case 'key':
            throw tooMany(
              429,
              `A project has at most ${boundText(bounds.liveStreamsOfProject)} live streams.`,
            );
          default:
            throw tooMany(503, `The server has ${boundText(bounds.liveStreams)} live streams.`);
        }
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
        release();
        clearInterval(heartbeat);
        clearTimeout(deadline);
        unsubscribe();
      });
    },
  );
}

import type { FastifyInstance, HTTPMethods } from 'fastify';
import { ApiError } from './api_error.ts';

const methods: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Collects the routes of an app as they are registered. */
export function collectRoutes(app: FastifyInstance): ReadonlyMap<string, ReadonlySet<string>> {
  const routes = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = routes.get(url) ?? new Set();
    for (const one of [method].flat()) known.add(one);
    if (known.has('GET')) known.add('HEAD');
    routes.set(url, known);
  });
  return routes;
}

/** Answers 405 and the methods there are on every path that has been registered. Call it after all routes. */
export function rejectOtherMethods(
  app: FastifyInstance,
  routes: ReadonlyMap<string, ReadonlySet<string>>,
): void {
  for (const [url, known] of [...routes]) {
    const allow = [...known].sort().join(', ');
    app.route({
      method: methods.filter((method) => !known.has(method)),
      url,
      schema: { hide: true },
      // Before the body is read: what it holds does not matter.
      onRequest: (request, _reply, done) => {
        done(
          new ApiError(405, 'method_not_allowed', `Method "${request.method}" not allowed.`, {
            headers: { allow },
          }),
        );
      },
      handler: () => undefined,
    });
  }
}

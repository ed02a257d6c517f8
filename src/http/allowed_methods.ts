import { METHODS } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { ApiError } from './api_error.ts';

/** Every method that Node parses, except CONNECT, which asks for a tunnel and never reaches a route. */
const methods = METHODS.filter((method) => method !== 'CONNECT');

/** Collects the methods of each route as routes are registered. */
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

/** Responds 405 with the header `Allow` to other methods of the registered paths. Call it after all routes are added. */
export function rejectOtherMethods(
  app: FastifyInstance,
  routes: ReadonlyMap<string, ReadonlySet<string>>,
): void {
  for (const method of methods) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  for (const [url, known] of [...routes]) {
    const allow = [...known].sort().join(', ');
    app.route({
      method: methods.filter((method) => !known.has(method)),
      url,
      schema: { hide: true },
      // Runs before the body is parsed, so an invalid body does not hide the 405.
      onRequest: (request, _reply, done) => {
        done(
          new ApiError(
            405,
            'method_not_allowed',
            `Method ${request.method} is not allowed. Allowed methods: ${allow}.`,
            {
              headers: { allow },
            },
          ),
        );
      },
      handler: () => undefined,
    });
  }
}

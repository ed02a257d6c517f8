import type { FastifyInstance } from 'fastify';
import findMyWay from 'find-my-way';
import { ApiError } from '../api_error.ts';

/** How paths are matched, by the router and by what tells an unknown path from a method that a path does not have. */
export const routerOptions = {
  ignoreTrailingSlash: true,
  // Query ids are chosen by clients, and percent encoding lengthens them.
  maxParamLength: 2_000,
};

/**
 * Responds 405 with the header `Allow` to methods that a path does not have, also where a path with a parameter has them, as
 * `query/:id` has those of `query/check`. Call it before routes are added. It keeps the paths in a router of its own: a route
 * for each other method of each path were thousands, which every start would wait for.
 */
export function rejectOtherMethods(app: FastifyInstance): void {
  const paths = findMyWay(routerOptions);
  const methodsOf = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    let known = methodsOf.get(url);
    if (!known) {
      methodsOf.set(url, (known = new Set()));
      paths.on('GET', url, () => undefined, known);
    }
    for (const one of [method].flat()) known.add(one);
    if (known.has('GET')) known.add('HEAD');
  });
  // Runs before the body is parsed, so that an invalid body does not hide the 405.
  app.addHook('onRequest', (request, _reply, done) => {
    const known = paths.find('GET', request.url)?.store as ReadonlySet<string> | null | undefined;
    if (!known || known.has(request.method)) {
      done();
      return;
    }
    const allow = [...known].sort().join(', ');
    const message = `Method ${request.method} is not allowed. Allowed methods: ${allow}.`;
    done(new ApiError(405, 'method_not_allowed', message, { headers: { allow } }));
  });
}

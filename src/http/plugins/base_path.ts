import type { FastifyInstance } from 'fastify';
import { SettingsError } from '../../config/settings.ts';

/** The URL of a request as routes know it: without the base path, which a proxy may leave in or take out. */
export function withoutBasePath(url: string, basePath: string): string {
  const rest = basePath !== '' && url.startsWith(basePath) ? url.slice(basePath.length) : url;
  // Another path may begin with the same characters.
  if (rest !== '' && !/^[/?]/.test(rest)) return url;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/**
 * Refuses a base path that a route has or begins with: the server could not tell whether a proxy has left the path in. Call it
 * before routes are added. With such a path, the application rejects `ready` with a SettingsError.
 */
export function refuseOwnPath(app: FastifyInstance, basePath: string): void {
  const segments = segmentsOf(basePath);
  if (segments.length === 0) return;
  let isOwn = false;
  app.addHook('onRoute', ({ url }) => {
    isOwn ||= beginsWith(segmentsOf(url), segments);
  });
  app.addHook('onReady', (done) => {
    done(
      isOwn
        ? new SettingsError(
            `EXPORTD_BASE_URL is invalid: exportd has the path ${basePath} itself. Choose another, such as https://host/tools/exportd.`,
          )
        : undefined,
    );
  });
}

const segmentsOf = (path: string): readonly string[] => path.split('/').filter((segment) => segment !== '');

/** Whether a path of a route, in which `:name` is any segment and `*` any rest, can begin with these segments. */
function beginsWith(route: readonly string[], segments: readonly string[]): boolean {
  const rest = route.indexOf('*');
  return segments.every((segment, at) => {
    const own = route[at];
    return own === segment || own?.includes(':') === true || (rest !== -1 && at >= rest);
  });
}

import { join } from 'node:path';

/** The modules that a page of the console needs beside those of every page. */
export interface PageModules {
  /** Matches the path of the page. */
  readonly path: RegExp;
  readonly modules: readonly string[];
}

const routesModule = 'router/routes.ts';

/** The modules that every page needs before its first paint. */
export const firstModules = (modules: ReadonlyMap<string, string>): ReadonlySet<string> =>
  staticImports('main.ts', modules);

/**
 * The modules of each page that src/console/router/routes.ts names, in its order: the first that matches wins.
 * @param first the modules of `firstModules`, which are left out
 */
export function pageModules(
  modules: ReadonlyMap<string, string>,
  first: ReadonlySet<string>,
): readonly PageModules[] {
  const routes = modules.get(routesModule) ?? '';
  return [...routes.matchAll(/pattern: '([^']+)', load: \(\) => import\('([^']+)'\)/g)].map(
    ([, pattern = '', specifier = '']) => ({
      path: new RegExp(`^${pattern.replaceAll(/:\w+/g, '[^/]+').replace(/\/$/, '')}/?$`),
      modules: [...staticImports(resolve(routesModule, specifier), modules)].filter(
        (path) => !first.has(path),
      ),
    }),
  );
}

/** The modules that a module imports statically, and those that they import, with itself. */
function staticImports(
  path: string,
  modules: ReadonlyMap<string, string>,
  found = new Set<string>(),
): Set<string> {
  const text = modules.get(path);
  if (text === undefined || found.has(path)) return found;
  found.add(path);
  for (const [, specifier = ''] of text.matchAll(/^(?:import|export)\b[^;]*?from '(\.[^']+)'/gm))
    staticImports(resolve(path, specifier), modules, found);
  return found;
}

const resolve = (from: string, specifier: string): string =>
  join(from, '..', specifier).replaceAll('\\', '/');

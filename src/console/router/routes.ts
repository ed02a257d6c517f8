import type { ComponentType } from 'preact';
import type { PageProps } from './paths.ts';

/** The module of a page: `pages/<name>/page.ts`, whose default export is its component. */
interface PageModule {
  readonly default: ComponentType<PageProps>;
}

/** The pattern of a path and its page. */
interface Route {
  readonly pattern: string;
  readonly load: () => Promise<PageModule>;
}

/**
 * Every page of the console; the first pattern that matches wins. The server reads these lines, to preload the modules of a
 * page (src/http/console/console_files.ts).
 */
const routes: readonly Route[] = [
  { pattern: '/', load: () => import('../pages/exports/page.ts') },
  { pattern: '/exports/new', load: () => import('../pages/edit/page.ts') },
  { pattern: '/exports/:id', load: () => import('../pages/export/page.ts') },
  { pattern: '/exports/:id/edit', load: () => import('../pages/edit/page.ts') },
  { pattern: '/exports/:id/intervals/:start', load: () => import('../pages/interval/page.ts') },
  { pattern: '/query', load: () => import('../pages/query/page.ts') },
  { pattern: '/keys', load: () => import('../pages/keys/page.ts') },
  { pattern: '/webhooks', load: () => import('../pages/webhooks/page.ts') },
  { pattern: '/source', load: () => import('../pages/source/page.ts') },
  { pattern: '/audit', load: () => import('../pages/audit/page.ts') },
];

/** The component of a page, and the parameters of its path. */
interface FoundPage {
  readonly PageView: ComponentType<PageProps>;
  readonly params: PageProps['params'];
}

/** The pause before a module that did not load is requested again. */
const retryMs = 500;

/** Loads the page of a path; undefined if there is none. @throws TypeError when it cannot be loaded twice. */
export async function loadPage(path: string): Promise<FoundPage | undefined> {
  for (const route of routes) {
    const params = matchRoute(route.pattern, path);
    if (params) return { PageView: await loadTwice(route), params };
  }
  return undefined;
}

/** The parameters of a path, or undefined if the path does not match. `/exports/:id` matches `/exports/1`. */
export function matchRoute(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split('/').filter(Boolean);
  const given = path.split('/').filter(Boolean);
  if (wanted.length !== given.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? '';
    if (part.startsWith(':')) {
      try {
        parameters[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return undefined;
      }
    } else if (part !== value) return undefined;
  }
  return parameters;
}

async function loadTwice({ load }: Route): Promise<ComponentType<PageProps>> {
  try {
    return (await load()).default;
  } catch {
    await new Promise((resolve) => {
      window.setTimeout(resolve, retryMs);
    });
    return (await load()).default;
  }
}

/** Loads every page, one after the other, whenever the browser has nothing else to do. */
export async function loadAllPages(): Promise<void> {
  for (const { load } of routes) {
    await idle();
    // A page that is opened later is requested again.
    await load().catch(() => undefined);
  }
}

/** Resolves when the browser is idle. Safari does not say so. */
const idle = (): Promise<unknown> =>
  new Promise((resolve) => {
    if ('requestIdleCallback' in window) window.requestIdleCallback(resolve);
    else setTimeout(resolve, retryMs);
  });

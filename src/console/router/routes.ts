import type { ComponentType } from 'preact';
import type { Scope } from '../../http/scopes.ts';
import type { PageProps } from './paths.ts';

/** The module of a page: `pages/<name>/page.ts`, whose default export is its component. */
interface PageModule {
  readonly default: ComponentType<PageProps>;
}

/** The pattern of a path and its page. */
interface Route {
  readonly pattern: string;
  readonly load: () => Promise<PageModule>;
  /** Its title for a key that may not see it. */
  readonly title: string;
  /** What a key needs to see it. */
  readonly scopes: readonly Scope[];
}

const read: readonly Scope[] = ['batch_export:read'];
const write: readonly Scope[] = ['batch_export:write'];

/**
 * Every page of the console; the first pattern that matches wins. The bundler reads these lines: each page
 * begins a file, whose modules the server preloads (src/http/console/bundle_console.ts).
 */
const routes: readonly Route[] = [
  { pattern: '/', load: () => import('../pages/exports/page.ts'), title: 'Exports', scopes: read },
  {
    pattern: '/exports/new',
    load: () => import('../pages/edit/page.ts'),
    title: 'New export',
    scopes: write,
  },
  { pattern: '/exports/:id', load: () => import('../pages/export/page.ts'), title: 'Export', scopes: read },
  {
    pattern: '/exports/:id/edit',
    load: () => import('../pages/edit/page.ts'),
    title: 'Edit',
    scopes: [...read, ...write],
  },
  {
    pattern: '/exports/:id/intervals/:start',
    load: () => import('../pages/interval/page.ts'),
    title: 'Interval',
    scopes: read,
  },
  { pattern: '/query', load: () => import('../pages/query/page.ts'), title: 'Query', scopes: ['query:read'] },
  { pattern: '/keys', load: () => import('../pages/keys/page.ts'), title: 'API keys', scopes: ['key:admin'] },
  { pattern: '/webhooks', load: () => import('../pages/webhooks/page.ts'), title: 'Webhooks', scopes: read },
  {
    pattern: '/source',
    load: () => import('../pages/source/page.ts'),
    title: 'Map a table',
    scopes: ['source:read'],
  },
  {
    pattern: '/audit',
    load: () => import('../pages/audit/page.ts'),
    title: 'Audit trail',
    scopes: ['audit:read'],
  },
];

/** The component of a page, and the parameters of its path. */
interface FoundPage extends Pick<Route, 'title' | 'scopes'> {
  readonly PageView: ComponentType<PageProps>;
  readonly params: PageProps['params'];
}

/** The pause before a module that did not load is requested again. */
const retryMs = 500;

/** Loads the page of a path; undefined if there is none. @throws TypeError when it cannot be loaded, also by another document. */
export async function loadPage(path: string): Promise<FoundPage | undefined> {
  for (const route of routes) {
    const params = matchRoute(route.pattern, path);
    const { title, scopes } = route;
    if (params) return { PageView: await loadAgain(route), params, title, scopes };
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

async function loadAgain({ load }: Route): Promise<ComponentType<PageProps>> {
  try {
    return (await load()).default;
  } catch {
    await new Promise((resolve) => {
      window.setTimeout(resolve, retryMs);
    });
    try {
      return (await load()).default;
    } catch (error) {
      if (!(await reloadOnce())) throw error;
      return new Promise(() => undefined);
    }
  }
}

/** The path whose document was loaded again. */
const reloadedKey = 'exportd.reloaded';

/**
 * Loads the document of this path again, unless the server does not respond or that was done just now. Many browsers do not request a
 * module again that failed once (Chromium until version 153), and a server that was updated has others.
 * @returns whether it is being loaded
 */
async function reloadOnce(): Promise<boolean> {
  const { sessionStorage, location } = window;
  const wasReloaded = sessionStorage.getItem(reloadedKey) === location.pathname;
  sessionStorage.removeItem(reloadedKey);
  if (wasReloaded) return false;
  const responds = await fetch(location.href).then(
    ({ ok }) => ok,
    () => false,
  );
  if (!responds) return false;
  sessionStorage.setItem(reloadedKey, location.pathname);
  location.reload();
  return true;
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

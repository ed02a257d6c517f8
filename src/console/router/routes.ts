import type { ComponentType } from 'preact';
import type { PageProps } from './paths.ts';

/** The module of a page: `pages/<name>/page.ts`, whose default export is its component. */
interface PageModule {
  readonly default: ComponentType<PageProps>;
}

/** The pattern of a path and its page. */
export interface Route {
  readonly pattern: string;
  readonly load: () => Promise<PageModule>;
}

/**
 * Every page of the console; the first pattern that matches wins. The server reads these lines, to preload the modules of a
 * page (src/http/console/page_modules.ts).
 */
export const routes: readonly Route[] = [
  { pattern: '/', load: () => import('../pages/exports/page.ts') },
  { pattern: '/exports/new', load: () => import('../pages/edit/page.ts') },
  { pattern: '/exports/:id', load: () => import('../pages/export/page.ts') },
  { pattern: '/exports/:id/edit', load: () => import('../pages/edit/page.ts') },
  { pattern: '/exports/:id/intervals/:start', load: () => import('../pages/interval/page.ts') },
  { pattern: '/query', load: () => import('../pages/query/page.ts') },
];

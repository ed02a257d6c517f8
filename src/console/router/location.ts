import { computed, signal } from '@preact/signals';
import { basePath } from './paths.ts';

/** The path and query of the page that is shown. */
export const currentUrl = signal(new URL(window.location.href));

/** The query parameters of the page that is shown. */
export const currentQuery = computed(() => currentUrl.value.searchParams);

/** The query parameter of the project, in the address of every page if the key covers several. */
export const projectParameter = 'project';

/** An address with the project of the page that is shown. */
function inThisProject(url: URL): URL {
  const project = currentQuery.peek().get(projectParameter);
  if (project !== null) url.searchParams.set(projectParameter, project);
  return url;
}

/**
 * Shows another page of the console, in the same project unless the path names another one. `replace` keeps the back
 * button from returning to this one.
 */
export function navigate(path: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const given = new URL(path, window.location.href);
  show(given.searchParams.has(projectParameter) ? given : inThisProject(given), replace);
}

function show(url: URL, replace: boolean): void {
  if (url.href === currentUrl.value.href) return;
  const samePage = url.pathname === currentUrl.value.pathname;
  if (replace) window.history.replaceState(null, '', url);
  else window.history.pushState(null, '', url);
  currentUrl.value = url;
  if (!samePage) window.scrollTo(0, 0);
}

/** Changes query parameters of this page, without an entry in the history. Null removes one. */
export function setQuery(changes: Readonly<Record<string, string | null>>): void {
  const url = new URL(currentUrl.value);
  for (const [name, value] of Object.entries(changes))
    if (value === null || value === '') url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  show(url, true);
}

/** Whether a path is that of a page, and not of the API or of another service of the host. */
const isPagePath = (path: string): boolean =>
  `${path}/`.startsWith(`${basePath}/`) &&
  !/^\/(api|console|healthz|readyz|livez|metrics)(\/|$)/.test(path.slice(basePath.length));

/** The link to a page of the console that an event happens at. */
function pageLinkOf({ target }: Event): HTMLAnchorElement | undefined {
  const link = target instanceof Element ? target.closest('a') : null;
  if (link?.target !== '' || link.hasAttribute('download')) return undefined;
  const url = new URL(link.href, window.location.href);
  const isAnchor = url.hash !== '' && url.pathname === window.location.pathname;
  const isPage = url.origin === window.location.origin && isPagePath(url.pathname) && !isAnchor;
  return isPage ? link : undefined;
}

/** Follows links to pages of the console without loading the document again. Call it once. */
export function followLinks(): void {
  window.addEventListener('popstate', () => {
    currentUrl.value = new URL(window.location.href);
  });
  // A link that is opened in another tab, or copied, names the project too.
  document.addEventListener('mousedown', (event) => {
    const link = currentQuery.peek().has(projectParameter) && pageLinkOf(event);
    if (link) link.href = inThisProject(new URL(link.href)).href;
  });
  document.addEventListener('click', (event) => {
    const isPlainClick =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = pageLinkOf(event);
    if (!isPlainClick || event.defaultPrevented || !link) return;
    event.preventDefault();
    navigate(inThisProject(new URL(link.href)).href);
  });
}

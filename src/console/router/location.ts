import { computed, signal } from '@preact/signals';

/** The path and query of the page that is shown. */
export const currentUrl = signal(new URL(window.location.href));

/** The query parameters of the page that is shown. */
export const currentQuery = computed(() => currentUrl.value.searchParams);

/** Shows another page of the console. `replace` keeps the back button from returning to this one. */
export function navigate(path: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const url = new URL(path, window.location.href);
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
  navigate(url.href, { replace: true });
}

/** Paths of the server that are not pages of the console. */
const isServerPath = (path: string): boolean =>
  /^\/(api|console|healthz|readyz|livez|metrics)(\/|$)/.test(path);

/** Follows links to pages of the console without loading the document again. Call it once. */
export function followLinks(): void {
  window.addEventListener('popstate', () => {
    currentUrl.value = new URL(window.location.href);
  });
  document.addEventListener('click', (event) => {
    const isPlainClick =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!isPlainClick || event.defaultPrevented) return;
    if (link?.target !== '' || link.hasAttribute('download')) return;
    const url = new URL(link.href, window.location.href);
    const isAnchor = url.hash !== '' && url.pathname === window.location.pathname;
    if (url.origin !== window.location.origin || isServerPath(url.pathname) || isAnchor) return;
    event.preventDefault();
    navigate(url.href);
  });
}

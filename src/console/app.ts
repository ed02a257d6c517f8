import { useSignal } from '@preact/signals';
import { Component } from 'preact';
import { useCallback, useEffect } from 'preact/hooks';
import { type ApiFailure, may, readSession, session, signOut, toFailure } from './api/client.ts';
import { Button, Dialog, Toasts } from './components/actions.ts';
import { EmptyState, FailureNotice, Page } from './components/page.ts';
import { type Content, html, type View } from './html.ts';
import { shortcuts, useShortcut } from './keyboard.ts';
import { SignInPage } from './pages/sign_in/page.ts';
import { currentUrl, navigate } from './router/location.ts';
import { paths } from './router/paths.ts';
import { loadAllPages, loadPage } from './router/routes.ts';
import { setTheme, theme, type Theme } from './theme.ts';

/** Every shortcut of the page that is shown. */
function ShortcutList({ onClose }: { readonly onClose: () => void }): View {
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${onClose}>
    <dl class="shortcuts">
      ${shortcuts.value.map(
        ({ keys, label }) =>
          html`<div key=${keys}>
            <dt>${keys.split(' ').map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt>
            <dd>${label}</dd>
          </div>`,
      )}
    </dl>
  <//>`;
}

const nextTheme: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };
const themeNames: Record<Theme, string> = { system: 'System', light: 'Light', dark: 'Dark' };

/** What surrounds every page: navigation, project, colours, sign-out, and the skip link. */
function Frame({ children }: { readonly children: Content }): View {
  const showsShortcuts = useSignal(false);
  const open = useCallback(() => (showsShortcuts.value = true), [showsShortcuts]);
  useShortcut('g e', 'Go to exports', goToExports);
  useShortcut('g q', 'Go to query', goToQuery);
  useShortcut('?', 'List the shortcuts', open);
  const current = session.value;
  const isQuery = currentUrl.value.pathname.startsWith(paths.query);
  return html`<div class="frame">
    <a class="skip-link" href="#content">Skip to content</a>
    <header class="top-bar">
      <a class="brand" href=${paths.exports}>
        <svg viewBox="0 0 18 16" aria-hidden="true">
          <path d="M0 0h5v5H0zM7 0h5v5H7zM0 7h5v9H0zM7 7h5v9H7zM14 7h4v9h-4z" />
        </svg>
        exportd</a
      >
      <nav class="top-links" aria-label="Main">
        <a href=${paths.exports} aria-current=${isQuery ? undefined : 'page'}>Exports</a>
        ${may('query:read') && html`<a href=${paths.query} aria-current=${isQuery ? 'page' : undefined}>Query</a>`}
        ${current?.temporal_ui && html`<a href=${current.temporal_ui} target="_blank" rel="noreferrer">Temporal</a>`}
        <a href="/api/docs" target="_blank">API</a>
      </nav>
      <div class="top-side">
        <span class="top-project" title="Project ${current?.project.id}">${current?.project.name}</span>
        <${Button}
          kind="quiet"
          label="Theme: ${themeNames[theme.value]}"
          onClick=${() => setTheme(nextTheme[theme.value])}
        >
          <span class="theme-label">Theme:</span> ${themeNames[theme.value].toLowerCase()}
        <//>
        <${Button} kind="quiet" label="Keyboard shortcuts" onClick=${open}>?<//>
        <${Button} kind="quiet" onClick=${() => void signOut()}>Sign out<//>
      </div>
    </header>
    <main id="content" tabindex="-1">${children}</main>
    <${Toasts} />
    ${showsShortcuts.value && html`<${ShortcutList} onClose=${() => (showsShortcuts.value = false)} />`}
  </div>`;
}

const goToExports = () => navigate(paths.exports);
const goToQuery = () => {
  if (may('query:read')) navigate(paths.query);
};

/** The console: the sign-in page, or the frame with the page of the current path. */
export function App(): View {
  const failure = useSignal<ApiFailure | undefined>(undefined);
  const read = () =>
    readSession().then(
      () => {
        failure.value = undefined;
      },
      (error: unknown) => {
        failure.value = toFailure(error);
      },
    );
  useEffect(() => {
    void read();
  }, []);
  if (failure.value)
    return html`<main class="sign-in"><${FailureNotice} failure=${failure.value} onRetry=${read} /></main>`;
  if (session.value === undefined) return html`<main class="sign-in" aria-busy="true" />`;
  if (session.value === null) return html`<${SignInPage} />`;
  return html`<${Frame}><${CurrentPage} key=${session.value.project.id} /><//>`;
}

interface ShownPage {
  readonly path: string;
  readonly view: View;
}

/** How long a page may load before a notice says so. */
const slowMs = 10_000;

/** The page of the current path. The former page stays until the module of the next one is loaded. */
function CurrentPage(): View {
  const shown = useSignal<ShownPage | undefined>(undefined);
  const path = currentUrl.value.pathname;
  useEffect(() => {
    let isCurrent = true;
    const show = (view: View) => {
      if (isCurrent) shown.value = { path, view };
    };
    const slow = window.setTimeout(() => show(html`<${SlowPage} />`), slowMs);
    void viewOf(path).then((view) => {
      window.clearTimeout(slow);
      const isFirst = shown.peek() === undefined;
      show(view);
      if (isFirst) void loadAllPages();
    });
    return () => {
      isCurrent = false;
      window.clearTimeout(slow);
    };
  }, [path, shown]);
  if (!shown.value) return html`<div class="loading" />`;
  return html`<${ErrorBoundary} key=${shown.value.path}>${shown.value.view}<//>`;
}

async function viewOf(path: string): Promise<View> {
  try {
    const page = await loadPage(path);
    if (page) return html`<${page.PageView} key=${path} params=${page.params} />`;
  } catch {
    return html`<${Page} title="This page did not load">
      <${EmptyState} title="The server does not respond, or has been updated.">
        <${Button} onClick=${reload}>Reload<//>
      <//>
    <//>`;
  }
  return html`<${Page} title="Not found">
    <${EmptyState} title="There is no page at this address."><a href=${paths.exports}>Show all exports</a><//>
  <//>`;
}

const reload = () => window.location.reload();

const SlowPage = (): View =>
  html`<${Page} title="Loading">
    <${EmptyState} title="This page takes long to load."><${Button} onClick=${reload}>Reload<//><//>
  <//>`;

/** Shows the error of a page instead of an empty document. */
class ErrorBoundary extends Component<{ readonly children: Content }, { readonly error?: unknown }> {
  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return html`<${Page} title="This page failed">
      <${FailureNotice} failure=${toFailure(error)} onRetry=${reload} />
    <//>`;
  }
}

import { effect, useSignal } from '@preact/signals';
import { Component } from 'preact';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import {
  api,
  type ExportdError,
  chooseProject,
  may,
  project,
  projectId,
  readSession,
  session,
  signOut,
  signOutEverywhere,
  timezone,
  toFailure,
} from './api/client.ts';
import { pollWhileVisible, useRequest } from './api/resource.ts';
import { Button, Dialog, Toasts } from './components/actions.ts';
import { EmptyState, FailureNotice, LacksScope, Page, useShownCurrent } from './components/page.ts';
import { Facts } from './components/table.ts';
import { formatMoment } from './formatting/format.ts';
import { type Content, html, type View } from './html.ts';
import { shortcuts, useShortcut } from './keyboard.ts';
import { SignInPage } from './pages/sign_in/page.ts';
import { currentQuery, currentUrl, navigate, projectParameter, setQuery } from './router/location.ts';
import { basePath, paths, serverPath } from './router/paths.ts';
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

/** Where this browser keeps the project that was shown last. */
const projectKey = 'exportd-project';

/**
 * Shows the project that the address names, else the one that this browser has shown last. While the key covers several, the
 * address always names one, so that links, history and tabs keep theirs. Call it once.
 */
export function followProject(): void {
  effect(() => {
    const named = currentQuery.value.get(projectParameter) ?? window.localStorage.getItem(projectKey);
    chooseProject(named === null ? undefined : Number(named));
    const current = session.value;
    if (!current) return;
    const id = current.projects.length > 1 ? String(projectId.value) : null;
    if (id !== null) window.localStorage.setItem(projectKey, id);
    setQuery({ [projectParameter]: id });
  });
}

/** Shows another project, on the same page unless that is of an object of this one. */
function switchProject(id: string): void {
  const url = new URL(currentUrl.peek());
  const isOfObject = url.pathname.startsWith(serverPath('/exports/')) && url.pathname !== paths.newExport;
  const shown = isOfObject ? new URL(paths.exports, url) : url;
  shown.searchParams.delete('offset');
  shown.searchParams.set(projectParameter, id);
  navigate(shown.href);
}

/** The name of the project, or a choice among those of the key. */
function ProjectSwitch(): View {
  const projects = session.value?.projects ?? [];
  if (projects.length < 2)
    return html`<span class="top-project" title="Project ${projectId.value}">${project.value?.name}</span>`;
  return html`<select
    class="input top-project"
    aria-label="Project"
    value=${projectId.value}
    onChange=${(event: Event) => switchProject((event.currentTarget as HTMLSelectElement).value)}
  >
    ${projects.map(
      ({ id, name }) =>
        html`<option key=${id} value=${id} selected=${id === projectId.value}>${name}</option>`,
    )}
  </select>`;
}

/** Switches between the colours of the system, light and dark ones. */
function ThemeButton(): View {
  return html`<${Button}
    kind="quiet"
    label="Theme: ${themeNames[theme.value]}"
    onClick=${() => setTheme(nextTheme[theme.value])}
    >Theme: ${themeNames[theme.value].toLowerCase()}<//
  >`;
}

/** Who is signed in with which key, and the way out of this browser and of all. On a phone, the bar has no room for more. */
function Account({ onClose }: { readonly onClose: () => void }): View {
  const isAsking = useSignal(false);
  const { failure, isBusy, run } = useRequest(signOutEverywhere);
  const current = session.value;
  if (!current) return null;
  const { user, actor, key, scopes, projects } = current;
  if (isAsking.value)
    return html`<${Dialog}
      title="Sign out everywhere?"
      onClose=${onClose}
      actions=${html`<${Button} onClick=${onClose}>Cancel<//>
        <${Button} kind="danger" busy=${isBusy} onClick=${() => void run()}>Sign out everywhere<//>`}
    >
      <p>
        All browsers that are signed in with a key of ${user.email} are signed out, this one too. The keys
        stay valid: revoke a key that others may know.
      </p>
      ${failure && html`<${FailureNotice} failure=${failure} />`}
    <//>`;
  return html`<${Dialog}
    title="Account"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} onClick=${() => (isAsking.value = true)}>Sign out everywhere…<//>`}
  >
    <${Facts}
      facts=${[
        ['User', actor.email],
        ...(actor.id === user.id ? [] : [['Rights of', user.email]]),
        ['API key', html`${key.name} <code>${key.prefix}…</code>`],
        ['Scopes', scopes.join(', '), 'wide'],
        ['Projects', projects.map(({ name }) => name).join(', ')],
        ['Times are in', timezone.value],
      ]}
    />
    <div class="page-actions">
      <${ThemeButton} />
      <${Button} onClick=${() => void signOut()}>Sign out<//>
    </div>
  <//>`;
}

/** The pages that the navigation leads to, and what a key needs to see them. */
const mainPages = [
  { path: paths.exports, label: 'Exports', keys: 'g e', scope: undefined },
  { path: paths.query, label: 'Query', keys: 'g q', scope: 'query:read' },
  { path: paths.webhooks, label: 'Webhooks', keys: 'g w', scope: 'batch_export:read' },
  { path: paths.keys, label: 'Keys', keys: 'g k', scope: 'key:admin' },
  { path: paths.audit, label: 'Audit', keys: 'g a', scope: 'audit:read' },
] as const;

/** Links to the main pages. Pages of exports belong to the first. */
function MainLinks(): View {
  const { pathname } = currentUrl.value;
  const current = mainPages.findLast(({ path }) => pathname.startsWith(path));
  return html`${mainPages.map(
    (page) =>
      (page.scope === undefined || may(page.scope)) &&
      html`<${MainLink} key=${page.path} page=${page} isCurrent=${page === current} />`,
  )}`;
}

function MainLink({
  page: { path, label, keys },
  isCurrent,
}: {
  readonly page: (typeof mainPages)[number];
  readonly isCurrent: boolean;
}): View {
  const go = useCallback(() => navigate(path), [path]);
  useShortcut(keys, `Go to ${label.toLowerCase()}`, go);
  return html`<a href=${path} aria-current=${isCurrent ? 'page' : undefined}>${label}</a>`;
}

/** How long `/readyz` may take, in milliseconds. */
const serviceTimeoutMs = 5_000;

/** What `/readyz` says of the service. */
interface ServiceState {
  readonly act: string;
  readonly operator_faults:
    | readonly { readonly type: string; readonly message?: string; readonly opened_at: string }[]
    | null;
}

/** What is wrong with the service, a sentence each: servers that do not respond, and what its operator has to fix. */
async function readServiceProblems(): Promise<string[]> {
  try {
    const response = await fetch(serverPath('/readyz?for=read'), {
      signal: AbortSignal.timeout(serviceTimeoutMs),
    });
    const { act, operator_faults } = (await response.json()) as ServiceState;
    return [
      ...(act === 'ok' ? [] : [act]),
      ...(operator_faults ?? []).map(
        ({ type, message = `The operator of exportd has to fix a fault (${type}).`, opened_at }) =>
          `${message} Since ${formatMoment(opened_at, timezone.value)} ${timezone.value}.`,
      ),
    ];
  } catch {
    return ['The exportd server does not respond. What is shown may be old.'];
  }
}

/** A bar on every page while the service cannot do everything. Nothing else. */
function ServiceBar(): View {
  const problems = useSignal<readonly string[]>([]);
  useEffect(() => {
    const read = async () => {
      problems.value = await readServiceProblems();
    };
    void read();
    return pollWhileVisible(() => void read());
  }, [problems]);
  if (problems.value.length === 0) return null;
  return html`<div class="service-bar notice notice-danger" role="alert">
    ${problems.value.map((problem) => html`<p key=${problem}>${problem}</p>`)}
  </div>`;
}

/** What surrounds every page: navigation, project, colours, account, sign-out, and the skip link. */
function Frame({ children }: { readonly children: Content }): View {
  const showsShortcuts = useSignal(false);
  const showsAccount = useSignal(false);
  // Any request finds out that another tab or browser has ended the session.
  useEffect(
    () => pollWhileVisible(() => void api.get('/api/projects/', { limit: 1 }).catch(() => undefined)),
    [],
  );
  const open = useCallback(() => (showsShortcuts.value = true), [showsShortcuts]);
  useShortcut('?', 'List the shortcuts', open);
  const current = session.value;
  const links = useRef<HTMLElement>(null);
  useShownCurrent(links, currentUrl.value.pathname);
  return html`<div class="frame">
    <a class="skip-link" href="#content">Skip to content</a>
    <header class="top-bar">
      <a class="brand" href=${paths.exports}>
        <svg viewBox="0 0 18 16" aria-hidden="true">
          <path d="M0 0h5v5H0zM7 0h5v5H7zM0 7h5v9H0zM7 7h5v9H7zM14 7h4v9h-4z" />
        </svg>
        <span class="brand-name">exportd</span></a
      >
      <nav class="top-links" aria-label="Main" ref=${links}>
        <${MainLinks} />
        ${current?.temporal_ui && html`<a href=${current.temporal_ui} target="_blank" rel="noreferrer">Temporal</a>`}
        <a href=${serverPath('/api/docs')} target="_blank">API</a>
      </nav>
      <div class="top-side">
        <${ProjectSwitch} />
        <span class="top-wide">
          <span class="muted">Times in ${timezone.value}</span>
          <${ThemeButton} />
          <${Button} kind="quiet" label="Keyboard shortcuts" onClick=${open}>?<//>
        </span>
        <${Button} kind="quiet" label="Account" onClick=${() => (showsAccount.value = true)}>
          <svg class="account-sign" viewBox="0 0 12 12" aria-hidden="true">
            <path d="M6 0a3 3 0 0 1 0 6a3 3 0 0 1 0-6z M0 12a6 5 0 0 1 12 0z" />
          </svg>
        <//>
        <span class="top-wide"><${Button} kind="quiet" onClick=${() => void signOut()}>Sign out<//></span>
      </div>
    </header>
    <${ServiceBar} />
    <main id="content" tabindex="-1">${children}</main>
    <${Toasts} />
    ${showsShortcuts.value && html`<${ShortcutList} onClose=${() => (showsShortcuts.value = false)} />`}
    ${showsAccount.value && html`<${Account} onClose=${() => (showsAccount.value = false)} />`}
  </div>`;
}

/** The console: the sign-in page, or the frame with the page of the current path. */
export function App(): View {
  const failure = useSignal<ExportdError | undefined>(undefined);
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
  return html`<${Frame}><${CurrentPage} key=${projectId.value} /><//>`;
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
    const page = await loadPage(path.slice(basePath.length));
    if (page && !page.scopes.every(may))
      return html`<${LacksScope} title=${page.title} scopes=${page.scopes} />`;
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

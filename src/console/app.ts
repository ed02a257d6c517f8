import { useSignal } from '@preact/signals';
import { Component } from 'preact';
import { useEffect } from 'preact/hooks';
import { toFailure, type ApiFailure } from './api/api_failure.ts';
import { readSession, session } from './api/session.ts';
import { Button } from './components/button.ts';
import { EmptyState } from './components/empty_state.ts';
import { FailureNotice } from './components/failure_notice.ts';
import { Page } from './components/page.ts';
import { Frame } from './frame.ts';
import { html, type Content, type View } from './html.ts';
import { SignInPage } from './pages/sign_in/page.ts';
import { currentUrl } from './router/location.ts';
import { loadAllPages, loadPage } from './router/page_modules.ts';
import { paths } from './router/paths.ts';

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

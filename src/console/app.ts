import { useSignal } from '@preact/signals';
import { Component, type ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { toFailure, type ApiFailure } from './api/api_failure.ts';
import { readSession, session } from './api/session.ts';
import { EmptyState } from './components/empty_state.ts';
import { FailureNotice } from './components/failure_notice.ts';
import { Page } from './components/page.ts';
import { Frame } from './frame.ts';
import { html, type Content, type View } from './html.ts';
import { SignInPage } from './pages/sign_in/page.ts';
import { currentUrl } from './router/location.ts';
import { matchRoute } from './router/match_route.ts';
import { paths, type PageProps } from './router/paths.ts';
import { routes } from './router/routes.ts';

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

interface LoadedPage {
  readonly path: string;
  readonly view: View;
}

/** The page of the current path. The former page stays until the module of the next one is loaded. */
function CurrentPage(): View {
  const shown = useSignal<LoadedPage | undefined>(undefined);
  const path = currentUrl.value.pathname;
  useEffect(() => {
    let isCurrent = true;
    void loadPage(path).then((view) => {
      if (isCurrent) shown.value = { path, view };
    });
    return () => {
      isCurrent = false;
    };
  }, [path, shown]);
  if (!shown.value) return html`<div class="loading" />`;
  return html`<${ErrorBoundary} key=${shown.value.path}>${shown.value.view}<//>`;
}

async function loadPage(path: string): Promise<View> {
  for (const { pattern, load } of routes) {
    const params = matchRoute(pattern, path);
    if (!params) continue;
    try {
      const { default: PageView }: { default: ComponentType<PageProps> } = await load();
      return html`<${PageView} key=${path} params=${params} />`;
    } catch {
      // The server was replaced by another version: the document names its files.
      return html`<${Page} title="Reload the page">
        <${EmptyState} title="The server has been updated."><a href=${path} target="_self">Reload</a><//>
      <//>`;
    }
  }
  return html`<${Page} title="Not found">
    <${EmptyState} title="There is no page at this address."><a href=${paths.exports}>Show all exports</a><//>
  <//>`;
}

/** Shows the error of a page instead of an empty document. */
class ErrorBoundary extends Component<{ readonly children: Content }, { readonly error?: unknown }> {
  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return html`<${Page} title="This page failed">
      <${FailureNotice} failure=${toFailure(error)} onRetry=${() => window.location.reload()} />
    <//>`;
  }
}

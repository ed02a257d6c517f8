import { useSignal } from '@preact/signals';
import { useCallback } from 'preact/hooks';
import { session, signOut, may } from './api/session.ts';
import { Button } from './components/button.ts';
import { Toasts } from './components/toast.ts';
import { html, type Content, type View } from './html.ts';
import { useShortcut } from './keyboard.ts';
import { currentUrl, navigate } from './router/location.ts';
import { paths } from './router/paths.ts';
import { ShortcutList } from './shortcut_list.ts';
import { setTheme, theme, type Theme } from './theme.ts';

const nextTheme: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };
const themeNames: Record<Theme, string> = { system: 'System', light: 'Light', dark: 'Dark' };

/** What surrounds every page: navigation, project, colours, sign-out, and the skip link. */
export function Frame({ children }: { readonly children: Content }): View {
  const showsShortcuts = useSignal(false);
  const open = useCallback(() => {
    showsShortcuts.value = true;
  }, [showsShortcuts]);
  useShortcut('g e', 'Go to exports', goToExports);
  useShortcut('g q', 'Go to query', goToQuery);
  useShortcut('?', 'List the shortcuts', open);
  const current = session.value;
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
        <${TopLink} path=${paths.exports} isCurrent=${!currentUrl.value.pathname.startsWith(paths.query)}
          >Exports<//
        >
        ${
          may('query:read') &&
          html`<${TopLink} path=${paths.query} isCurrent=${currentUrl.value.pathname.startsWith(paths.query)}
            >Query<//
          >`
        }
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
    ${
      showsShortcuts.value &&
      html`<${ShortcutList}
        onClose=${() => {
          showsShortcuts.value = false;
        }}
      />`
    }
  </div>`;
}

const goToExports = () => navigate(paths.exports);
const goToQuery = () => {
  if (may('query:read')) navigate(paths.query);
};

function TopLink({
  path,
  isCurrent,
  children,
}: {
  readonly path: string;
  readonly isCurrent: boolean;
  readonly children: Content;
}): View {
  return html`<a href=${path} aria-current=${isCurrent ? 'page' : undefined}>${children}</a>`;
}

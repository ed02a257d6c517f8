import { useEffect, useRef } from 'preact/hooks';
import type { Scope } from '../../http/scopes.ts';
import { type ExportdError, type ListOf, may, projectId, session, timezone } from '../api/client.ts';
import type { Resource } from '../api/resource.ts';
import { withLocalTimes } from '../formatting/format.ts';
import { type Content, html, type View } from '../html.ts';
import { setQuery } from '../router/location.ts';
import { paths } from '../router/paths.ts';
import { Button, CopyLine } from './actions.ts';

/** A page: its title, also of the document, what stands above and beside it, and the content. */
export function Page({
  title,
  parents = [],
  subtitle,
  actions,
  children,
}: {
  readonly title: string;
  /** The pages above this one, outermost first. */
  readonly parents?: readonly { readonly title: string; readonly path: string }[];
  readonly subtitle?: Content;
  /** Buttons at the right of the title. */
  readonly actions?: Content;
  readonly children?: Content;
}): View {
  useEffect(() => {
    document.title = `${title} · exportd`;
  }, [title]);
  return html`<div class="page">
    ${
      parents.length > 0 &&
      html`<nav class="page-parents" aria-label="Breadcrumb">
        ${parents.map(({ title: name, path }) => html`<a key=${path} href=${path}>${name}</a>`)}
      </nav>`
    }
    <header class="page-header">
      <div class="page-heading">
        <h1 tabindex="-1">${title}</h1>
        ${subtitle && html`<div class="page-subtitle">${subtitle}</div>`}
      </div>
      ${actions && html`<div class="page-actions">${actions}</div>`}
    </header>
    ${children}
  </div>`;
}

/** A part of a page with a heading of its own. */
export function Section({
  title,
  actions,
  children,
}: {
  readonly title: string;
  readonly actions?: Content;
  readonly children?: Content;
}): View {
  return html`<section class="section">
    <header class="section-header">
      <h2>${title}</h2>
      ${actions && html`<div class="page-actions">${actions}</div>`}
    </header>
    ${children}
  </section>`;
}

/** What stands where nothing is yet. `children` says what to do next: a sentence, a link or a button. */
export function EmptyState({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: Content;
}): View {
  return html`<div class="empty-state">
    <p class="empty-state-title">${title}</p>
    ${children && html`<div class="empty-state-next">${children}</div>`}
  </div>`;
}

/** A page that the key may not see: what it lacks, and the command that makes a key with that and all that this one has. */
export function LacksScope({
  title,
  scopes,
}: {
  readonly title: string;
  readonly scopes: readonly Scope[];
}): View {
  const lacking = scopes.filter((scope) => !may(scope));
  const all = [...(session.value?.scopes ?? []), ...lacking].join(',');
  return html`<${Page} title=${title}>
    <${EmptyState} title="This key lacks the scope${lacking.length > 1 ? 's' : ''} ${lacking.join(' and ')}">
      <p>Sign in with a key that has it. Who has the database creates one:</p>
      <${CopyLine}
        label="command that creates a key"
        text="npx exportd key create --database --project ${projectId.value} --scopes ${all}"
      />
    <//>
  <//>`;
}

/** Buttons to the neighbours of a page of a list, newest first, whose place is `offset` in the address. */
export function OffsetPages({
  page,
  offset,
  size,
}: {
  readonly page: ListOf<unknown>;
  readonly offset: number;
  readonly size: number;
}): View {
  const show = (start: number) => () => setQuery({ offset: start > 0 ? String(start) : null });
  if (page.previous === null && page.next === null) return null;
  return html`<div class="page-actions">
    <${Button} disabled=${page.previous === null} onClick=${show(offset - size)}>Newer<//>
    <${Button} disabled=${page.next === null} onClick=${show(offset + size)}>Older<//>
  </div>`;
}

/** An error of the API, with a button that tries again. */
export function FailureNotice({
  failure,
  onRetry,
}: {
  readonly failure: ExportdError;
  readonly onRetry?: () => unknown;
}): View {
  return html`<div class="notice notice-danger" role="alert">
    <p>${withLocalTimes(failure.message, timezone.value)}</p>
    ${onRetry && html`<${Button} onClick=${() => void onRetry()}>Try again<//>`}
  </div>`;
}

/** Shows a resource once it is read, and its failure if it cannot be. `children` is a function of the data. */
export function Loaded<Data>({
  resource,
  children,
}: {
  readonly resource: Resource<Data>;
  readonly children: (data: Data) => Content;
}): View {
  const { data, failure, reload } = resource;
  return html`<div class="loaded" aria-busy=${resource.isLoading ? 'true' : undefined}>
    ${failure && html`<${FailureNotice} failure=${failure} onRetry=${reload} />`}
    ${data === undefined ? !failure && html`<div class="loading" />` : children(data)}
  </div>`;
}

/** The same for the resource of a whole page, whose address may name one that does not exist. */
export function LoadedPage<Data>({
  resource,
  what,
  parent = { title: 'Show all exports', path: paths.exports },
  children,
}: {
  readonly resource: Resource<Data>;
  /** What the address names: `export`. */
  readonly what: string;
  /** Where to go instead. */
  readonly parent?: { readonly title: string; readonly path: string };
  readonly children: (data: Data) => Content;
}): View {
  if (resource.data !== undefined || resource.failure?.status !== 404)
    return html`<${Loaded} resource=${resource}>${children}<//>`;
  return html`<${Page} title="Not found">
    <${EmptyState} title="There is no such ${what}">
      It was deleted, belongs to another project, or its address is wrong.${' '}
      <a href=${parent.path}>${parent.title}</a>
    <//>
  <//>`;
}

/** Scrolls links that are wider than the window of a phone to the current one. */
export function useShownCurrent(links: { readonly current: HTMLElement | null }, current: string): void {
  useEffect(() => {
    const all = links.current;
    const shown = all?.querySelector<HTMLElement>('[aria-current]');
    if (all && shown) all.scrollLeft = shown.offsetLeft - all.offsetLeft - all.clientWidth / 3;
  }, [links, current]);
}

/** A part of a page that is shown alone. */
interface Tab {
  readonly id: string;
  readonly label: string;
}

/** Links to the parts of a page, of which one is shown. Each has an address of its own. */
export function Tabs({
  label,
  tabs,
  current,
  pathOf,
}: {
  /** What the parts are of, for screen readers. */
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly current: string;
  readonly pathOf: (id: string) => string;
}): View {
  const element = useRef<HTMLElement>(null);
  useShownCurrent(element, current);
  return html`<nav class="tabs" aria-label=${label} ref=${element}>
    ${tabs.map(
      ({ id, label: name }) =>
        html`<a key=${id} href=${pathOf(id)} aria-current=${id === current ? 'page' : undefined}>${name}</a>`,
    )}
  </nav>`;
}

import { useEffect } from 'preact/hooks';
import { html, type Content, type View } from '../html.ts';

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

import { html, type Content, type View } from '../html.ts';

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

import { useEffect, useRef } from 'preact/hooks';
import { html, type View } from '../html.ts';

/** A part of a page that is shown alone. */
export interface Tab {
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
  useEffect(() => {
    // On a phone the tabs are wider than the window.
    element.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return html`<nav class="tabs" aria-label=${label} ref=${element}>
    ${tabs.map(
      ({ id, label: name }) =>
        html`<a key=${id} href=${pathOf(id)} aria-current=${id === current ? 'page' : undefined}>${name}</a>`,
    )}
  </nav>`;
}

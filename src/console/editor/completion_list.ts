import { useEffect, useRef } from 'preact/hooks';
import { html, type View } from '../html.ts';
import type { Completion } from './completion.ts';

/** The completions below the caret, with the documentation of the selected one. */
export function CompletionList({
  items,
  selected,
  position,
  onAccept,
}: {
  readonly items: readonly Completion[];
  readonly selected: number;
  /** Of the caret, in the editor. */
  readonly position: { readonly left: number; readonly top: number };
  readonly onAccept: (item: Completion) => void;
}): View {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.children[selected]?.scrollIntoView({ block: 'nearest' });
  }, [selected]);
  const description = items[selected]?.description;
  const style = { '--caret-left': `${position.left}px`, '--caret-top': `${position.top}px` };
  return html`<div class="completions" style=${style}>
    <ul class="completions-list" ref=${list} role="listbox" id="editor-completions" aria-label="Completions">
      ${items.map(
        (item, index) =>
          html`<li
            key=${`${item.kind} ${item.text}`}
            id="editor-completion-${index}"
            role="option"
            aria-selected=${index === selected ? 'true' : 'false'}
            class="completion ${index === selected ? 'completion-selected' : ''}"
            onMouseDown=${(event: MouseEvent) => {
              // Keeps the focus in the text.
              event.preventDefault();
              onAccept(item);
            }}
          >
            <span class="completion-text">${item.text.replace(/\($/, '')}</span>
            <span class="completion-detail">${item.detail || item.kind}</span>
          </li>`,
      )}
    </ul>
    ${description && html`<p class="completions-description">${description}</p>`}
  </div>`;
}

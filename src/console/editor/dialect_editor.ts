import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ControlProps } from '../components/field.ts';
import { html, type View } from '../html.ts';
import { type Completion, type Completions, completionsAt, type CompletionSource } from './completion.ts';
import { dialectTokens, type ErrorRange, markedPieces } from './marked_text.ts';

/** The completions below the caret, with the documentation of the selected one. */
function CompletionList({
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

const closed: Completions = { from: 0, items: [] };

/**
 * A text area for the dialect: highlighted, with the wrong part underlined, and completion while the user types or on
 * Ctrl+Space. Ctrl+Enter calls `onSubmit`. It grows with its text.
 */
export function DialectEditor({
  value,
  onInput,
  onSubmit,
  error = null,
  source,
  label,
  control,
  placeholder,
}: {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly onSubmit?: () => void;
  readonly error?: ErrorRange | null;
  /** Null until the vocabulary is read; nothing is completed then. */
  readonly source: CompletionSource | null;
  /** The accessible name, outside of a field. */
  readonly label?: string;
  readonly control?: ControlProps;
  readonly placeholder?: string;
}): View {
  const area = useRef<HTMLTextAreaElement>(null);
  const marker = useRef<HTMLSpanElement>(null);
  const completions = useSignal(closed);
  const selected = useSignal(0);
  const position = useSignal({ left: 0, top: 0 });
  const { from, items } = completions.value;

  const close = () => (completions.value = closed);
  const complete = (isAsked: boolean) => {
    const caret = area.current?.selectionStart ?? 0;
    completions.value =
      source === null ? closed : completionsAt(area.current?.value ?? '', caret, source, { isAsked });
    selected.value = 0;
  };
  const accept = ({ text, kind }: Completion) => {
    const element = area.current;
    if (!element) return;
    element.focus();
    element.setSelectionRange(from, element.selectionStart);
    // Deprecated without a successor: nothing else inserts text that Ctrl+Z takes back. After setRangeText, Chromium 156
    // keeps the completion on undo and forgets the steps before it.
    // oxlint-disable-next-line typescript/no-deprecated
    document.execCommand('insertText', false, text);
    if (kind !== 'function') close();
  };
  useEffect(() => {
    if (marker.current) position.value = { left: marker.current.offsetLeft, top: marker.current.offsetTop };
  }, [from, items.length > 0]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      close();
      onSubmit?.();
    } else if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      complete(true);
    } else if (items.length > 0) handleListKey(event);
  };
  const handleListKey = (event: KeyboardEvent) => {
    const chosen = items[selected.value];
    const moves: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };
    const move = moves[event.key];
    if (move !== undefined) selected.value = (selected.value + move + items.length) % items.length;
    else if ((event.key === 'Tab' || event.key === 'Enter') && chosen) accept(chosen);
    else if (event.key === 'Escape') close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const keywords = new Set(source?.vocabulary.keywords ?? []);
  const pieces = markedPieces(value, dialectTokens(value, keywords), error);
  return html`<div class="editor ${error ? 'editor-invalid' : ''}">
    <pre class="editor-backdrop" aria-hidden="true">
${pieces.map(
        ({ text, look, isWrong }, index) =>
          html`<span key=${index} class="token-${look} ${isWrong ? 'token-wrong' : ''}">${text}</span>`,
      )}${'\n'}</pre>
    ${
      items.length > 0 &&
      html`<pre
        class="editor-backdrop editor-ruler"
        aria-hidden="true"
      >${value.slice(0, from)}<span ref=${marker}></span></pre>`
    }
    <textarea
      ...${control ?? {}}
      ref=${area}
      class="editor-text"
      aria-label=${label}
      aria-autocomplete="list"
      aria-controls=${items.length > 0 ? 'editor-completions' : undefined}
      aria-activedescendant=${items.length > 0 ? `editor-completion-${selected.value}` : undefined}
      spellcheck=${false}
      autocapitalize="off"
      autocomplete="off"
      placeholder=${placeholder}
      value=${value}
      onInput=${(event: InputEvent) => {
        onInput((event.currentTarget as HTMLTextAreaElement).value);
        complete(false);
      }}
      onKeyDown=${onKeyDown}
      onBlur=${close}
      onClick=${close}
    />
    ${
      items.length > 0 &&
      html`<${CompletionList}
        items=${items}
        selected=${selected.value}
        position=${position.value}
        onAccept=${accept}
      />`
    }
  </div>`;
}

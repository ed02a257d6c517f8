import { useEffect, useId, useRef } from 'preact/hooks';
import { html, type Content, type View } from '../html.ts';

/** A modal dialog while it is rendered. Escape and a click beside it call `onClose`. */
export function Dialog({
  title,
  onClose,
  actions,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  /** Buttons at the bottom. */
  readonly actions?: Content;
  readonly children?: Content;
}): View {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const opener = document.activeElement;
    element.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return html`<dialog
    class="dialog"
    ref=${element}
    aria-labelledby=${titleId}
    onCancel=${(event: Event) => {
      event.preventDefault();
      onClose();
    }}
    onClick=${(event: MouseEvent) => {
      if (event.target === element.current) onClose();
    }}
  >
    <div class="dialog-content">
      <h2 id=${titleId}>${title}</h2>
      ${children} ${actions && html`<div class="dialog-actions">${actions}</div>`}
    </div>
  </dialog>`;
}

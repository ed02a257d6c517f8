import { useSignal } from '@preact/signals';
import { html, type View } from '../html.ts';
import { Button } from './button.ts';
import { toast } from './toast.ts';

const shownMs = 2_000;

const selectAll = (event: FocusEvent): void => (event.currentTarget as HTMLInputElement).select();

/** A button that copies a text. */
function CopyButton({ label, text }: { readonly label: string; readonly text: string }): View {
  const isCopied = useSignal(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      isCopied.value = true;
      window.setTimeout(() => {
        isCopied.value = false;
      }, shownMs);
    } catch {
      // Browsers offer the clipboard to https and localhost alone.
      toast('The browser does not allow copying here. Select the text and copy it.', 'danger');
    }
  };
  return html`<${Button} kind="quiet" label="Copy ${label}" onClick=${() => void copy()}
    >${isCopied.value ? 'Copied' : 'Copy'}<//
  >`;
}

/** A line of code with a button that copies it. */
export function CopyLine({ label, text }: { readonly label: string; readonly text: string }): View {
  return html`<div class="copy-line">
    <input class="copy-line-text" readonly aria-label=${label} value=${text} onFocus=${selectAll} />
    <${CopyButton} label=${label} text=${text} />
  </div>`;
}

/** Lines of code with a button that copies them. */
export function CopyBlock({ label, text }: { readonly label: string; readonly text: string }): View {
  return html`<div class="copy-block">
    <pre tabindex="0">${text}</pre>
    <${CopyButton} label=${label} text=${text} />
  </div>`;
}

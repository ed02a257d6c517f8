import { signal, useSignal } from '@preact/signals';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import type { Scope } from '../../http/scopes.ts';
import { type ActionRequest, curlLine, exportdLine, may, send, toFailure } from '../api/client.ts';
import { type Content, html, type View } from '../html.ts';

type ButtonKind = 'plain' | 'primary' | 'danger' | 'quiet';

/**
 * A button, or with `href` a link that looks like one. `primary` at most once on a page. While it does nothing it keeps the focus,
 * which a `disabled` button loses.
 */
export function Button({
  kind = 'plain',
  type = 'button',
  href,
  label,
  disabled = false,
  busy = false,
  onClick,
  children,
}: {
  readonly kind?: ButtonKind;
  readonly type?: 'button' | 'submit';
  readonly href?: string;
  /** The accessible name, where the content is a sign only. */
  readonly label?: string;
  readonly disabled?: boolean;
  readonly busy?: boolean;
  readonly onClick?: (event: MouseEvent) => void;
  readonly children?: Content;
}): View {
  const name = `button button-${kind}`;
  if (href !== undefined) return html`<a class=${name} href=${href} aria-label=${label}>${children}</a>`;
  const isOff = disabled || busy;
  return html`<button
    class=${name}
    type=${type}
    aria-label=${label}
    aria-busy=${busy ? 'true' : undefined}
    aria-disabled=${isOff ? 'true' : undefined}
    onClick=${isOff ? ignore : onClick}
  >
    ${children}
  </button>`;
}

/** Keeps a button of a form from sending it. */
const ignore = (event: MouseEvent): void => event.preventDefault();

type Tone = 'good' | 'danger';

interface ToastMessage {
  readonly id: number;
  readonly text: string;
  readonly tone: Tone;
}

const messages = signal<readonly ToastMessage[]>([]);
const toastShownMs = 6_000;
let newest = 0;

/** Says briefly what happened. Errors of a field or of a page stay there instead. */
export function toast(text: string, tone: Tone = 'good'): void {
  newest += 1;
  const id = newest;
  messages.value = [...messages.value, { id, text, tone }];
  window.setTimeout(() => {
    messages.value = messages.value.filter((message) => message.id !== id);
  }, toastShownMs);
}

/** Where toasts appear; once, in the frame. */
export function Toasts(): View {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${messages.value.map(({ id, text, tone }) => html`<p key=${id} class="toast toast-${tone}">${text}</p>`)}
  </div>`;
}

const copiedShownMs = 2_000;

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
      }, copiedShownMs);
    } catch {
      // Browsers offer the clipboard to https and localhost alone.
      toast('The browser does not allow copying here. Select the text and copy it.', 'danger');
    }
  };
  return html`<${Button}
    kind="quiet"
    label="${isCopied.value ? 'Copied' : 'Copy'} ${label}"
    onClick=${() => void copy()}
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

/** A modal dialog while it is rendered. Escape and a click beside it call `onClose`. */
export function Dialog({
  title,
  onClose,
  staysOpen = false,
  actions,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  /** A click beside it does not close it: what it shows is not shown again. */
  readonly staysOpen?: boolean;
  /** Buttons at the bottom. */
  readonly actions?: Content;
  readonly children?: Content;
}): View {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // At once, not after the next frame: the next key is for the dialog, and after it for what had opened it.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // Not the first line for a terminal, but what closes it. A secret stays selected: closing loses it.
    if (!staysOpen && document.activeElement?.matches('[readonly]'))
      dialog?.querySelector<HTMLElement>('.dialog-actions button')?.focus();
    // Gives the focus back.
    return () => dialog?.close();
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
      if (event.target === element.current && !staysOpen) onClose();
    }}
  >
    <div class="dialog-content">
      <h2 id=${titleId}>${title}</h2>
      ${children} ${actions && html`<div class="dialog-actions">${actions}</div>`}
    </div>
  </dialog>`;
}

/** Shows a secret that cannot be read again: `label` names it, and `children` say what it is for. */
export function SecretDialog({
  title,
  label,
  secret,
  onClose,
  children,
}: {
  readonly title: string;
  readonly label: string;
  readonly secret: string;
  readonly onClose: () => void;
  readonly children?: Content;
}): View {
  return html`<${Dialog}
    title=${title}
    staysOpen=${true}
    onClose=${onClose}
    actions=${html`<${Button} kind="primary" onClick=${onClose}>Done<//>`}
  >
    <p>${children}</p>
    <${CopyLine} label=${label} text=${secret} />
  <//>`;
}

/** An action of the API as a button. */
export interface Action extends ActionRequest {
  /** A verb: `Pause`. */
  readonly label: string;
  readonly kind?: ButtonKind;
  /** What the key needs. Without it the button is not shown. */
  readonly scope?: Scope;
  /** What is lost or changed, in a dialog that asks first. Required for what cannot be undone. */
  readonly confirm?: { readonly title: string; readonly text: Content };
  /** What a toast says afterwards: `Paused.` */
  readonly done: string;
  readonly onDone?: (response: unknown) => unknown;
  readonly disabled?: boolean;
  /** Requests that follow it, in order. */
  readonly more?: readonly ActionRequest[];
}

/** How many requests of an action are shown as lines. */
const shownRequests = 4;

/**
 * A button that sends a request, and beside it one that shows the same as a `curl` and as an `exportd` line. An action with
 * `confirm` shows both in its dialog, with the lines.
 */
export function ActionButton({ action }: { readonly action: Action }): View {
  const isBusy = useSignal(false);
  const isOpen = useSignal(false);
  const {
    label,
    scope = 'batch_export:write',
    kind = 'plain',
    confirm,
    disabled = false,
    more = [],
  } = action;
  if (!may(scope)) return null;

  const perform = async () => {
    isBusy.value = true;
    try {
      const response = await send<unknown>(action.method, action.path, { body: action.body });
      for (const { method, path, body } of more) await send<unknown>(method, path, { body });
      isOpen.value = false;
      toast(action.done);
      await action.onDone?.(response);
    } catch (error) {
      toast(toFailure(error).message, 'danger');
    } finally {
      isBusy.value = false;
    }
  };
  const open = () => (isOpen.value = true);
  const close = () => (isOpen.value = false);
  const run = () => void perform();
  return html`<span class="action">
    <${Button} kind=${kind} disabled=${disabled} busy=${isBusy.value} onClick=${confirm ? open : run}
      >${label}<//
    >
    <${Button} kind=${kind} disabled=${disabled} label="${label} from a terminal" onClick=${open}>
      <span class="action-sign" aria-hidden="true">›_</span>
    <//>
    ${
      isOpen.value &&
      html`<${Dialog}
        title=${confirm?.title ?? label}
        onClose=${close}
        actions=${html`<${Button} onClick=${close}>Close<//>
          <${Button} kind=${kind === 'danger' ? 'danger' : 'primary'} busy=${isBusy.value} onClick=${run}
            >${label}<//
          >`}
      >
        ${confirm?.text && html`<div class="dialog-text">${confirm.text}</div>`}
        ${[action, ...more].slice(0, shownRequests).map((request) => html`<${CommandLines} key=${request.path} request=${request} />`)}
      <//>`
    }
  </span>`;
}

/** The lines that do from a terminal what a request does. */
export function CommandLines({ request }: { readonly request: ActionRequest }): View {
  const command = exportdLine(request);
  return html`<div class="command-lines">
    <p class="muted">From a terminal:</p>
    ${command && html`<${CopyLine} label="exportd command" text=${command} />`}
    <${CopyLine} label="curl command" text=${curlLine(request)} />
  </div>`;
}

/** Saves a text as a file of the browser. */
export function saveFile(name: string, type: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

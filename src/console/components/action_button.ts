import { useSignal } from '@preact/signals';
import { toFailure } from '../api/api_failure.ts';
import { send } from '../api/client.ts';
import { curlLine, exportdLine, type ActionRequest } from '../api/command_lines.ts';
import { may, type Scope } from '../api/session.ts';
import { html, type Content, type View } from '../html.ts';
import { Button, type ButtonKind } from './button.ts';
import { CopyLine } from './copy_line.ts';
import { Dialog } from './dialog.ts';
import { toast } from './toast.ts';

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
}

/**
 * A button that sends a request, and beside it one that shows the same as a `curl` and as an `exportd` line. An action with
 * `confirm` shows both in its dialog, with the lines.
 */
export function ActionButton({ action }: { readonly action: Action }): View {
  const isBusy = useSignal(false);
  const isOpen = useSignal(false);
  const { label, scope = 'batch_export:write', kind = 'plain', confirm, disabled = false } = action;
  if (!may(scope)) return null;

  const perform = async () => {
    isBusy.value = true;
    try {
      const response = await send<unknown>(action.method, action.path, { body: action.body });
      isOpen.value = false;
      toast(action.done);
      await action.onDone?.(response);
    } catch (error) {
      toast(toFailure(error).message, 'danger');
    } finally {
      isBusy.value = false;
    }
  };
  const open = () => {
    isOpen.value = true;
  };
  const close = () => {
    isOpen.value = false;
  };
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
        <${CommandLines} request=${action} />
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

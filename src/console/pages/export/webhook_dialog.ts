import { useSignal } from '@preact/signals';
import type { WebhookResponse } from '../../../http/webhooks/schema.ts';
import { toFailure, type ApiFailure } from '../../api/api_failure.ts';
import { api } from '../../api/client.ts';
import { CommandLines } from '../../components/action_button.ts';
import { Button } from '../../components/button.ts';
import { CopyLine } from '../../components/copy_line.ts';
import { Dialog } from '../../components/dialog.ts';
import { SelectField, TextField } from '../../components/field.ts';
import { html, type View } from '../../html.ts';
import { incidentEvents, webhookEvents, type WebhookEvent } from './webhook_events.ts';

const formats = [
  { value: 'json', label: 'JSON' },
  { value: 'slack', label: 'Slack' },
];

const allEvents = Object.keys(webhookEvents) as WebhookEvent[];

/** Asks for the fields of a webhook of one export, adds it, and shows its signing secret once. */
export function WebhookDialog({
  exportId,
  onAdded,
  onClose,
}: {
  readonly exportId: string;
  readonly onAdded: () => unknown;
  readonly onClose: () => void;
}): View {
  const url = useSignal('');
  const format = useSignal('json');
  const events = useSignal<readonly WebhookEvent[]>(incidentEvents);
  const failure = useSignal<ApiFailure | undefined>(undefined);
  const isBusy = useSignal(false);
  const secret = useSignal<string | undefined>(undefined);
  const body = { url: url.value, format: format.value, events: events.value, batch_export: exportId };
  const add = async () => {
    isBusy.value = true;
    failure.value = undefined;
    try {
      const created = await api.post<WebhookResponse & { readonly secret: string }>('webhooks/', body);
      secret.value = created.secret;
      await onAdded();
    } catch (error) {
      failure.value = toFailure(error);
    } finally {
      isBusy.value = false;
    }
  };
  if (secret.value !== undefined)
    return html`<${Dialog}
      title="Webhook added"
      onClose=${onClose}
      actions=${html`<${Button} kind="primary" onClick=${onClose}>Done<//>`}
    >
      <p>Messages are signed with this secret. Store it now: it is not shown again.</p>
      <${CopyLine} label="signing secret" text=${secret.value} />
    <//>`;
  const choose = (event: WebhookEvent) => () => {
    const isChosen = events.value.includes(event);
    events.value = allEvents.filter((one) => (one === event ? !isChosen : events.value.includes(one)));
  };
  const { attr, message } = failure.value ?? {};
  return html`<${Dialog}
    title="Add webhook"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} kind="primary" busy=${isBusy.value} onClick=${() => void add()}>Add webhook<//>`}
  >
    <${TextField}
      label="URL"
      type="url"
      required
      value=${url.value}
      onInput=${(value: string) => {
        url.value = value;
      }}
      error=${attr === 'url' ? message : undefined}
    />
    <${SelectField}
      label="Format"
      value=${format.value}
      options=${formats}
      onChange=${(value: string) => {
        format.value = value;
      }}
    />
    <fieldset class="checks">
      <legend>Send when</legend>
      ${allEvents.map(
        (event) =>
          html`<label key=${event} class="check">
            <input type="checkbox" checked=${events.value.includes(event)} onChange=${choose(event)} />
            <span>${webhookEvents[event]} <code class="muted">${event}</code></span>
          </label>`,
      )}
    </fieldset>
    ${message !== undefined && attr !== 'url' && html`<p class="tone-danger" role="alert">${message}</p>`}
    <${CommandLines}
      request=${{
        method: 'POST',
        path: 'webhooks/',
        body,
        command: [
          ...['webhook', 'create', '--url', url.value, '--format', format.value],
          ...['--events', events.value.join(','), '--batch-export', exportId],
        ],
      }}
    />
  <//>`;
}

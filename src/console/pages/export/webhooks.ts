import { useSignal } from '@preact/signals';
import type { DeliveryResponse, WebhookResponse } from '../../../http/webhooks/schema.ts';
import { type ActionRequest, api, type ListOf, may, send, timezone } from '../../api/client.ts';
import { useRequest, useResource } from '../../api/resource.ts';
import {
  type Action,
  ActionButton,
  Button,
  CommandLines,
  Dialog,
  SecretDialog,
} from '../../components/actions.ts';
import { SelectField, TextField } from '../../components/field.ts';
import { Moment } from '../../components/moment.ts';
import { EmptyState, Loaded, Section } from '../../components/page.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { type Column, Table } from '../../components/table.ts';
import { formatInterval } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { paths } from '../../router/paths.ts';

/** What a webhook received of an export and what it did not, newest first. Each message can be sent again. */
function Deliveries({
  webhookId,
  exportId,
}: {
  readonly webhookId: string;
  /** Null for messages about any export. */
  readonly exportId: string | null;
}): View {
  const deliveries = useResource<ListOf<DeliveryResponse>>(`webhooks/${webhookId}/deliveries/`, {
    query: { batch_export: exportId, limit: 50 },
    polls: true,
  });
  return html`<${Loaded} resource=${deliveries}>
    ${({ results }: ListOf<DeliveryResponse>) =>
      html`<${Table}
        caption="Deliveries"
        columns=${columnsOf(deliveries.reload, exportId === null)}
        rows=${results}
        rowKey=${({ id }: DeliveryResponse) => id}
        empty=${html`<${EmptyState} title="No message yet" />`}
      />`}
  <//>`;
}

const columnsOf = (
  reload: () => Promise<void>,
  namesExport: boolean,
): readonly Column<DeliveryResponse>[] => [
  { header: 'Event', render: ({ event }) => event },
  ...(namesExport ? [exportColumn] : []),
  {
    header: 'Interval',
    secondary: true,
    render: ({ data_interval_start: start, data_interval_end: end }) =>
      start === null || end === null
        ? '–'
        : html`<span class="figures">${formatInterval(start, end, timezone.value)}</span>`,
  },
  {
    header: 'Status',
    render: ({ status, detail }) =>
      html`<div class="run-status">
        <${StatusBadge} status=${status} />
        ${detail !== null && html`<p class="muted">${detail}</p>`}
      </div>`,
  },
  { header: 'Attempts', align: 'right', secondary: true, render: ({ attempts }) => attempts },
  { header: 'Created', render: ({ created_at }) => html`<${Moment} at=${created_at} />` },
  {
    header: 'Actions',
    render: ({ id, webhook }) => {
      const resend: Action = {
        label: 'Resend',
        method: 'POST',
        path: `webhooks/${webhook}/deliveries/${id}/resend/`,
        body: {},
        command: ['webhook', 'resend', webhook, id],
        done: 'The message is sent again.',
        onDone: reload,
      };
      return html`<${ActionButton} action=${resend} />`;
    },
  },
];

const exportColumn: Column<DeliveryResponse> = {
  header: 'Export',
  render: ({ batch_export: id, batch_export_name: name }) =>
    id === null ? '–' : html`<a href=${paths.export(id)}>${name ?? id}</a>`,
};

/** An event that webhooks can receive. */
type WebhookEvent = WebhookResponse['events'][number];

/** What each event means. */
const webhookEvents: Readonly<Record<WebhookEvent, string>> = {
  'run.failed': 'a run failed',
  'run.retries_exhausted': 'no automatic retry is left',
  'run.held': 'a run is held, because rows are missing in the source',
  'run.key_taken': 'another object has the key of a file',
  'interval.published': 'an interval was published',
  'interval.expired': 'the bucket has deleted an interval',
  'batch_export.paused': 'the export was paused after failures',
  'batch_export.recovered': 'it works again',
  'backfill.paused': 'a backfill was paused after failures',
  'backfill.completed': 'a backfill is done',
  'source.unavailable': 'the source cannot be read',
  'source.recovered': 'the source can be read again',
  'destination.unavailable': 'the bucket does not respond',
  'destination.recovered': 'the bucket responds again',
  'export.behind': 'intervals are late',
  'export.caught_up': 'no interval is late any more',
  'export.differs': 'files differ from the source',
  'export.agrees': 'no files differ from the source any more',
  'export.holes': 'intervals between exported ones are missing',
  'export.holes_filled': 'no interval between exported ones is missing any more',
};

const allEvents = Object.keys(webhookEvents) as WebhookEvent[];

/** What a new webhook receives by default: what a person has to know. */
const incidentEvents = allEvents.filter(
  (event) => event !== 'interval.published' && event !== 'backfill.completed',
);

const formats = [
  { value: 'json', label: 'JSON' },
  { value: 'slack', label: 'Slack' },
  { value: 'pagerduty', label: 'PagerDuty' },
];

/** A secret that signs messages, as the server would make one. */
const newSecret = (): string =>
  `whsec_${btoa(String.fromCodePoint(...crypto.getRandomValues(new Uint8Array(32))))}`;

const useOfSecret = 'Messages are signed with this secret. Store it now: it is not shown again.';

/** Gives a webhook another secret, and shows it once. */
function RotateDialog({
  webhook: { id, url },
  onClose,
}: {
  readonly webhook: WebhookResponse;
  readonly onClose: () => void;
}): View {
  const { data, failure, isBusy, run } = useRequest(async () => {
    const secret = newSecret();
    await api.patch(`webhooks/${id}/`, { secret });
    return secret;
  });
  if (data !== undefined)
    return html`<${SecretDialog}
      title="Secret replaced"
      label="signing secret"
      secret=${data}
      onClose=${onClose}
      >${useOfSecret}<//
    >`;
  return html`<${Dialog}
    title="Replace the secret?"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} kind="primary" busy=${isBusy} onClick=${() => void run()}>Replace secret<//>`}
  >
    <p>
      The next message to ${url} is signed with a new secret alone. Until the receiver has it, it should
      refuse them; they are attempted again.
    </p>
    ${failure && html`<p class="tone-danger" role="alert">${failure.message}</p>`}
    <${CommandLines}
      request=${{
        method: 'PATCH',
        path: `webhooks/${id}/`,
        body: { secret: 'whsec_…' },
        command: ['webhook', 'update', id, '--rotate-secret'],
      }}
    />
  <//>`;
}

/** Asks for the fields of a new webhook or an existing one. Shows the signing secret of a new one once. */
function WebhookDialog({
  exportId,
  found,
  onSaved,
  onClose,
}: {
  /** The export whose events a new one receives; null for every export. */
  readonly exportId: string | null;
  readonly found: WebhookResponse | null;
  readonly onSaved: () => unknown;
  readonly onClose: () => void;
}): View {
  const url = useSignal(found?.url ?? '');
  const format = useSignal<string>(found?.format ?? 'json');
  const events = useSignal<readonly WebhookEvent[]>(found?.events ?? incidentEvents);
  const fields = { url: url.value, format: format.value, events: events.value };
  const request: ActionRequest = found
    ? {
        method: 'PATCH',
        path: `webhooks/${found.id}/`,
        body: fields,
        command: [
          'webhook',
          'update',
          found.id,
          '--url',
          url.value,
          '--format',
          format.value,
          '--events',
          events.value.join(','),
        ],
      }
    : {
        method: 'POST',
        path: 'webhooks/',
        body: { ...fields, ...(exportId !== null && { batch_export: exportId }) },
        command: [
          'webhook',
          'create',
          '--url',
          url.value,
          '--format',
          format.value,
          '--events',
          events.value.join(','),
          ...(exportId === null ? [] : ['--batch-export', exportId]),
        ],
      };
  const { data, failure, isBusy, run } = useRequest(async () => {
    const saved = await send<WebhookResponse & { readonly secret?: string }>(request.method, request.path, {
      body: request.body,
    });
    await onSaved();
    if (found) onClose();
    return saved;
  });
  if (data?.secret !== undefined)
    return html`<${SecretDialog}
      title="Webhook added"
      label="signing secret"
      secret=${data.secret}
      onClose=${onClose}
      >${useOfSecret}<//
    >`;
  const choose = (event: WebhookEvent) => () => {
    const isChosen = events.value.includes(event);
    events.value = allEvents.filter((one) => (one === event ? !isChosen : events.value.includes(one)));
  };
  const { attr, message } = failure ?? {};
  return html`<${Dialog}
    title=${found ? 'Edit webhook' : 'Add webhook'}
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} kind="primary" busy=${isBusy} onClick=${() => void run()}
        >${found ? 'Save' : 'Add webhook'}<//
      >`}
  >
    <${TextField}
      label="URL"
      type="url"
      required
      value=${url.value}
      onInput=${(value: string) => (url.value = value)}
      error=${attr === 'url' ? message : undefined}
    />
    <${SelectField}
      label="Format"
      value=${format.value}
      options=${formats}
      onChange=${(value: string) => (format.value = value)}
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
    <${CommandLines} request=${request} />
  <//>`;
}

/** The webhooks that hear of an export, or all of the project, with their deliveries and the dialogs that change them. */
export function Webhooks({ exportId }: { readonly exportId: string | null }): View {
  const opened = useSignal<WebhookResponse | 'new' | null>(null);
  const webhooks = useResource<ListOf<WebhookResponse>>('webhooks/', {
    query: { limit: 1_000 },
    polls: true,
  });
  const open = () => (opened.value = 'new');
  const add = may('batch_export:write') && html`<${Button} kind="primary" onClick=${open}>Add webhook…<//>`;
  return html`<${Section} title=${exportId === null ? 'Receivers' : 'Webhooks'} actions=${add}>
    <${Loaded} resource=${webhooks}>
      ${({ results }: ListOf<WebhookResponse>) => {
        const own = results.filter(
          ({ batch_export }) => exportId === null || batch_export === null || batch_export === exportId,
        );
        return own.length === 0
          ? html`<${EmptyState} title="No webhooks yet">
              A webhook posts failures, pauses, recoveries and published intervals to a URL or to Slack.
            <//>`
          : html`<ul class="webhooks">
              ${own.map(
                (webhook) =>
                  html`<${WebhookCard}
                    key=${webhook.id}
                    webhook=${webhook}
                    exportId=${exportId}
                    onEdit=${() => (opened.value = webhook)}
                    onChange=${webhooks.reload}
                  />`,
              )}
            </ul>`;
      }}
    <//>
    ${
      opened.value !== null &&
      html`<${WebhookDialog}
        exportId=${exportId}
        found=${opened.value === 'new' ? null : opened.value}
        onSaved=${webhooks.reload}
        onClose=${() => (opened.value = null)}
      />`
    }
  <//>`;
}

function WebhookCard({
  webhook,
  exportId,
  onEdit,
  onChange,
}: {
  readonly webhook: WebhookResponse;
  readonly exportId: string | null;
  readonly onEdit: () => void;
  readonly onChange: () => Promise<void>;
}): View {
  const showsDeliveries = useSignal(false);
  const rotates = useSignal(false);
  const { id, url, enabled, format, events, batch_export, last_delivery } = webhook;
  const toggle = () => (showsDeliveries.value = !showsDeliveries.value);
  return html`<li class="card webhook">
    <div class="webhook-head">
      <h3>${url}</h3>
      <div class="page-actions">
        ${
          may('batch_export:write') &&
          html`<${Button} onClick=${onEdit}>Edit…<//>
            <${Button} onClick=${() => (rotates.value = true)}>Replace secret…<//>`
        }
        ${actionsOf(webhook, onChange).map((action, place) => html`<${ActionButton} key=${place} action=${action} />`)}
      </div>
    </div>
    <p class="muted">
      ${enabled ? '' : 'Disabled. '}${formats.find(({ value }) => value === format)?.label},
      ${
        batch_export === null
          ? ' every export of the project'
          : exportId === null
            ? html` <a href=${paths.export(batch_export)}>one export</a>`
            : ' this export'
      }:
      ${' '}${namesOf(events)}
    </p>
    ${
      last_delivery &&
      html`<p class=${isSuccess(last_delivery.status) ? '' : 'tone-danger'}>
        Last attempt <${Moment} at=${last_delivery.at} />: ${last_delivery.detail}
      </p>`
    }
    <div>
      <${Button} onClick=${toggle}>${showsDeliveries.value ? 'Hide deliveries' : 'Deliveries'}<//>
    </div>
    ${showsDeliveries.value && html`<${Deliveries} webhookId=${id} exportId=${exportId} />`}
    ${rotates.value && html`<${RotateDialog} webhook=${webhook} onClose=${() => (rotates.value = false)} />`}
  </li>`;
}

/** The events of a webhook; in one word where it has all or nearly all. */
function namesOf(events: readonly WebhookEvent[]): string {
  if (events.length === allEvents.length) return 'all events';
  const isUsual =
    events.length === incidentEvents.length && incidentEvents.every((one) => events.includes(one));
  return isUsual ? 'all events but interval.published' : events.join(', ');
}

/** Whether the receiver took a message. */
const isSuccess = (status: number | null): boolean => status !== null && status >= 200 && status < 300;

function actionsOf({ id, url, enabled }: WebhookResponse, reload: () => Promise<void>): readonly Action[] {
  return [
    {
      label: 'Test',
      method: 'POST',
      path: `webhooks/${id}/test/`,
      body: {},
      command: ['webhook', 'test', id],
      done: 'The test was sent.',
      onDone: reload,
    },
    {
      label: enabled ? 'Disable' : 'Enable',
      method: 'PATCH',
      path: `webhooks/${id}/`,
      body: { enabled: !enabled },
      command: ['webhook', 'update', id, enabled ? '--disable' : '--enable'],
      done: enabled ? 'The webhook receives nothing more.' : 'The webhook is enabled.',
      onDone: reload,
    },
    {
      label: 'Delete',
      kind: 'danger',
      method: 'DELETE',
      path: `webhooks/${id}/`,
      command: ['webhook', 'delete', id],
      confirm: {
        title: 'Delete this webhook?',
        text: `${url} receives nothing more. Pending messages are dropped.`,
      },
      done: 'The webhook was deleted.',
      onDone: reload,
    },
  ];
}

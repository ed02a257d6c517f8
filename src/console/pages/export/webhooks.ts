import { useSignal } from '@preact/signals';
import type { DeliveryResponse, WebhookResponse } from '../../../http/webhooks/schema.ts';
import { api, type ListOf, may, timezone } from '../../api/client.ts';
import { useRequest, useResource } from '../../api/resource.ts';
import {
  type Action,
  ActionButton,
  Button,
  CommandLines,
  CopyLine,
  Dialog,
} from '../../components/actions.ts';
import { SelectField, TextField } from '../../components/field.ts';
import { Moment } from '../../components/moment.ts';
import { EmptyState, Loaded, Section } from '../../components/page.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { type Column, Table } from '../../components/table.ts';
import { formatInterval } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import type { PartProps } from './export_actions.ts';

/** What a webhook received of an export and what it did not, newest first. Each message can be sent again. */
function Deliveries({
  webhookId,
  exportId,
}: {
  readonly webhookId: string;
  readonly exportId: string;
}): View {
  const deliveries = useResource<ListOf<DeliveryResponse>>(`webhooks/${webhookId}/deliveries/`, {
    query: { batch_export: exportId, limit: 50 },
    live: exportId,
  });
  return html`<${Loaded} resource=${deliveries}>
    ${({ results }: ListOf<DeliveryResponse>) =>
      html`<${Table}
        caption="Deliveries"
        columns=${columnsOf(deliveries.reload)}
        rows=${results}
        rowKey=${({ id }: DeliveryResponse) => id}
        empty=${html`<${EmptyState} title="No message about this export yet" />`}
      />`}
  <//>`;
}

const columnsOf = (reload: () => Promise<void>): readonly Column<DeliveryResponse>[] => [
  { header: 'Event', render: ({ event }) => event },
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
  'source.unavailable': 'the source cannot be read',
  'source.recovered': 'the source can be read again',
  'destination.unavailable': 'the bucket does not respond',
  'destination.recovered': 'the bucket responds again',
  'export.behind': 'intervals are late',
  'export.caught_up': 'no interval is late any more',
  'export.holes': 'intervals between exported ones are missing',
  'export.holes_filled': 'no interval between exported ones is missing any more',
};

const allEvents = Object.keys(webhookEvents) as WebhookEvent[];

/** What a new webhook receives, unless somebody chooses: what a person has to know. */
const incidentEvents = allEvents.filter((event) => event !== 'interval.published');

const formats = [
  { value: 'json', label: 'JSON' },
  { value: 'slack', label: 'Slack' },
];

/** Asks for the fields of a webhook of one export, adds it, and shows its signing secret once. */
function WebhookDialog({
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
  const body = { url: url.value, format: format.value, events: events.value, batch_export: exportId };
  const { data, failure, isBusy, run } = useRequest(async () => {
    const created = await api.post<WebhookResponse & { readonly secret: string }>('webhooks/', body);
    await onAdded();
    return created;
  });
  if (data)
    return html`<${Dialog}
      title="Webhook added"
      onClose=${onClose}
      actions=${html`<${Button} kind="primary" onClick=${onClose}>Done<//>`}
    >
      <p>Messages are signed with this secret. Store it now: it is not shown again.</p>
      <${CopyLine} label="signing secret" text=${data.secret} />
    <//>`;
  const choose = (event: WebhookEvent) => () => {
    const isChosen = events.value.includes(event);
    events.value = allEvents.filter((one) => (one === event ? !isChosen : events.value.includes(one)));
  };
  const { attr, message } = failure ?? {};
  return html`<${Dialog}
    title="Add webhook"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} kind="primary" busy=${isBusy} onClick=${() => void run()}>Add webhook<//>`}
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

/** The webhooks that hear of an export, their deliveries, and the dialog that adds one. */
export function Webhooks({ found }: PartProps): View {
  const isOpen = useSignal(false);
  const webhooks = useResource<ListOf<WebhookResponse>>('webhooks/', {
    query: { limit: 1_000 },
    live: found.id,
  });
  const open = () => (isOpen.value = true);
  const add = may('batch_export:write') && html`<${Button} kind="primary" onClick=${open}>Add webhook…<//>`;
  return html`<${Section} title="Webhooks" actions=${add}>
    <${Loaded} resource=${webhooks}>
      ${({ results }: ListOf<WebhookResponse>) => {
        const own = results.filter(({ batch_export }) => batch_export === null || batch_export === found.id);
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
                    exportId=${found.id}
                    onChange=${webhooks.reload}
                  />`,
              )}
            </ul>`;
      }}
    <//>
    ${
      isOpen.value &&
      html`<${WebhookDialog}
        exportId=${found.id}
        onAdded=${webhooks.reload}
        onClose=${() => (isOpen.value = false)}
      />`
    }
  <//>`;
}

function WebhookCard({
  webhook,
  exportId,
  onChange,
}: {
  readonly webhook: WebhookResponse;
  readonly exportId: string;
  readonly onChange: () => Promise<void>;
}): View {
  const showsDeliveries = useSignal(false);
  const { id, url, enabled, format, events, batch_export, last_delivery } = webhook;
  const toggle = () => (showsDeliveries.value = !showsDeliveries.value);
  return html`<li class="card webhook">
    <div class="webhook-head">
      <h3>${url}</h3>
      <div class="page-actions">
        ${actionsOf(webhook, onChange).map((action) => html`<${ActionButton} key=${action.label} action=${action} />`)}
      </div>
    </div>
    <p class="muted">
      ${enabled ? '' : 'Disabled. '}${format === 'slack' ? 'Slack' : 'JSON'},
      ${batch_export === null ? ' every export of the project' : ' this export'}: ${events.join(', ')}
    </p>
    ${
      last_delivery && html`<p>Last attempt <${Moment} at=${last_delivery.at} />: ${last_delivery.detail}</p>`
    }
    <div>
      <${Button} onClick=${toggle}>${showsDeliveries.value ? 'Hide deliveries' : 'Deliveries'}<//>
    </div>
    ${showsDeliveries.value && html`<${Deliveries} webhookId=${id} exportId=${exportId} />`}
  </li>`;
}

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

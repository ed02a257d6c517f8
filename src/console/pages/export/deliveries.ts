import type { DeliveryResponse } from '../../../http/webhooks/schema.ts';
import type { ListOf } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { timezone } from '../../api/session.ts';
import { ActionButton, type Action } from '../../components/action_button.ts';
import { EmptyState } from '../../components/empty_state.ts';
import { Loaded } from '../../components/loaded.ts';
import { Moment } from '../../components/moment.ts';
import { StatusBadge } from '../../components/status_badge.ts';
import { Table, type Column } from '../../components/table.ts';
import { formatInterval } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';

/** What a webhook received of an export and what it did not, newest first. Each message can be sent again. */
export function Deliveries({
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

import { useSignal } from '@preact/signals';
import type { WebhookResponse } from '../../../http/webhooks/schema.ts';
import type { ListOf } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { may } from '../../api/session.ts';
import { ActionButton, type Action } from '../../components/action_button.ts';
import { Button } from '../../components/button.ts';
import { EmptyState } from '../../components/empty_state.ts';
import { Loaded } from '../../components/loaded.ts';
import { Moment } from '../../components/moment.ts';
import { Section } from '../../components/page.ts';
import { html, type View } from '../../html.ts';
import { Deliveries } from './deliveries.ts';
import type { PartProps } from './part_props.ts';
import { WebhookDialog } from './webhook_dialog.ts';

/** The webhooks that hear of an export, their deliveries, and the dialog that adds one. */
export function Webhooks({ found }: PartProps): View {
  const isOpen = useSignal(false);
  const webhooks = useResource<ListOf<WebhookResponse>>('webhooks/', {
    query: { limit: 1_000 },
    live: found.id,
  });
  const open = () => {
    isOpen.value = true;
  };
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
        onClose=${() => {
          isOpen.value = false;
        }}
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
  const toggle = () => {
    showsDeliveries.value = !showsDeliveries.value;
  };
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

import { useSignal } from '@preact/signals';
import type { BackfillResponse } from '../../../http/backfills/schema.ts';
import type { ListOf } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { may, timezone } from '../../api/session.ts';
import { ActionButton, type Action } from '../../components/action_button.ts';
import { Button } from '../../components/button.ts';
import { EmptyState } from '../../components/empty_state.ts';
import { Loaded } from '../../components/loaded.ts';
import { Moment } from '../../components/moment.ts';
import { Section } from '../../components/page.ts';
import { StatusBadge } from '../../components/status_badge.ts';
import { Table, type Column } from '../../components/table.ts';
import { formatCount, formatQuantity } from '../../formatting/count.ts';
import { formatInterval } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';
import { BackfillDialog } from './backfill_dialog.ts';
import type { PartProps } from './part_props.ts';

/** The backfills of an export with their progress, and the dialog that starts one. */
export function Backfills({ found, reload }: PartProps): View {
  const isOpen = useSignal(false);
  const backfills = useResource<ListOf<BackfillResponse>>(`batch_exports/${found.id}/backfills/`, {
    query: { limit: 50 },
    live: found.id,
  });
  const reloadAll = async () => {
    await Promise.all([backfills.reload(), reload()]);
  };
  const open = () => {
    isOpen.value = true;
  };
  const start = may('batch_export:write') && html`<${Button} kind="primary" onClick=${open}>Backfill…<//>`;
  return html`<${Section} title="Backfills" actions=${start}>
    <${Loaded} resource=${backfills}>
      ${(page: ListOf<BackfillResponse>) =>
        html`<${Table}
          caption="Backfills and retries"
          columns=${columnsOf(reloadAll)}
          rows=${page.results}
          rowKey=${({ id }: BackfillResponse) => id}
          empty=${html`<${EmptyState} title="No backfills">
            A backfill exports intervals of the past, or exports them again. A dry run counts their rows
            first.
          <//>`}
        />`}
    <//>
    ${
      isOpen.value &&
      html`<${BackfillDialog}
        exportId=${found.id}
        onClose=${() => {
          isOpen.value = false;
        }}
        onStarted=${reloadAll}
      />`
    }
  <//>`;
}

const columnsOf = (reload: () => unknown): readonly Column<BackfillResponse>[] => [
  {
    header: 'Range',
    render: ({ start_at, end_at }) =>
      html`<span class="figures">${formatInterval(start_at, end_at, timezone.value)}</span>`,
  },
  { header: 'Kind', secondary: true, render: kindOf },
  { header: 'Status', render: ({ status }) => html`<${StatusBadge} status=${status} />` },
  { header: 'Progress', render: (backfill) => html`<${Progress} backfill=${backfill} />` },
  { header: 'Created', render: ({ created_at }) => html`<${Moment} at=${created_at} />` },
  {
    header: 'Actions',
    render: (backfill) =>
      html`<div class="page-actions">
        ${actionsOf(backfill, reload).map((action) => html`<${ActionButton} key=${action.label} action=${action} />`)}
      </div>`,
  },
];

const kindOf = ({ retry_of_run_id, retries_failed, allow_shrink }: BackfillResponse): string => {
  const kind = retry_of_run_id !== null ? 'Retry' : retries_failed ? 'Retry of failed runs' : 'Backfill';
  return allow_shrink ? `${kind}, may remove rows` : kind;
};

function Progress({ backfill: { progress } }: { readonly backfill: BackfillResponse }): View {
  if (!progress) return html`<span class="muted">–</span>`;
  const { total_runs, finished_runs, failed_runs, retrying_runs, records_completed } = progress;
  const remarks = [
    `${formatCount(finished_runs)} of ${formatQuantity(total_runs, 'interval')}`,
    formatQuantity(records_completed, 'row'),
    failed_runs > 0 && `${formatCount(failed_runs)} failed`,
    retrying_runs > 0 && `${formatCount(retrying_runs)} retrying`,
  ].filter((remark) => typeof remark === 'string');
  return html`<div class="backfill-progress">
    <progress class="progress" max="1" value=${progress.progress} aria-label="Finished intervals" />
    <span class="figures muted">${remarks.join(', ')}</span>
  </div>`;
}

/** What can be done with an unfinished backfill. */
function actionsOf({ id, batch_export, status }: BackfillResponse, onDone: () => unknown): readonly Action[] {
  const actionOf = (name: string): Pick<Action, 'method' | 'path' | 'body' | 'command' | 'onDone'> => ({
    method: 'POST',
    path: `batch_exports/${batch_export}/backfills/${id}/${name}/`,
    body: {},
    command: ['backfill', name, batch_export, id],
    onDone,
  });
  const cancel: Action = {
    ...actionOf('cancel'),
    label: 'Cancel',
    kind: 'danger',
    confirm: {
      title: 'Cancel this backfill?',
      text: 'Its active runs are cancelled too. What it has exported stays.',
    },
    done: 'The backfill was cancelled.',
  };
  if (status === 'Running')
    return [{ ...actionOf('pause'), label: 'Pause', done: 'The backfill is paused.' }, cancel];
  if (status === 'Paused')
    return [{ ...actionOf('unpause'), label: 'Unpause', done: 'The backfill continues.' }, cancel];
  return [];
}

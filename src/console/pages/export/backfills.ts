import { useSignal } from '@preact/signals';
import type { BackfillResponse, DryRunResponse } from '../../../http/backfills/schema.ts';
import { api, type ExportdError, type ListOf, may, timezone, toFailure } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { type Action, ActionButton, Button, CommandLines, Dialog, toast } from '../../components/actions.ts';
import { TextField } from '../../components/field.ts';
import { Moment } from '../../components/moment.ts';
import { EmptyState, Loaded, Section } from '../../components/page.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { type Column, Facts, Table } from '../../components/table.ts';
import { formatCount, formatInterval, formatQuantity } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import type { PartProps } from './export_actions.ts';

const dayMs = 86_400_000;
const hourMs = 3_600_000;

/** A time in UTC as the value of a `datetime-local` field. */
const toField = (time: number): string => new Date(time).toISOString().slice(0, 16);
/** The value of a `datetime-local` field, which has no offset, as a time in UTC. */
const fromField = (value: string): string =>
  value === '' ? '' : `${value}${value.length === 16 ? ':00' : ''}Z`;

/** Asks for the range of a backfill, counts its intervals and rows by a dry run, and starts it. */
function BackfillDialog({
  exportId,
  onClose,
  onStarted,
}: {
  readonly exportId: string;
  readonly onClose: () => void;
  readonly onStarted: () => unknown;
}): View {
  const thisHour = Math.floor(Date.now() / hourMs) * hourMs;
  const start = useSignal(toField(thisHour - dayMs));
  const end = useSignal(toField(thisHour));
  const allowsShrink = useSignal(false);
  const preview = useSignal<DryRunResponse | undefined>(undefined);
  const failure = useSignal<ExportdError | undefined>(undefined);
  const busy = useSignal<'preview' | 'start' | undefined>(undefined);
  const path = `batch_exports/${exportId}/backfills/`;
  const range = { start_at: fromField(start.value), end_at: fromField(end.value) };
  const body = { ...range, ...(allowsShrink.value ? { allow_shrink: true } : {}) };

  const submit = async (what: 'preview' | 'start') => {
    busy.value = what;
    failure.value = undefined;
    try {
      if (what === 'preview') {
        preview.value = await api.post<DryRunResponse>(path, { ...range, dry_run: true });
      } else {
        await api.post(path, body);
        toast('The backfill has started.');
        await onStarted();
        onClose();
      }
    } catch (error) {
      failure.value = toFailure(error);
    } finally {
      busy.value = undefined;
    }
  };
  const errorOf = (field: string) => (failure.value?.attr === field ? failure.value.message : undefined);
  const change = (field: typeof start) => (value: string) => {
    field.value = value;
    preview.value = undefined;
    failure.value = undefined;
  };
  const isFieldError = ['start_at', 'end_at'].includes(failure.value?.attr ?? '');
  const flags = ['--start-at', range.start_at, '--end-at', range.end_at];
  return html`<${Dialog}
    title="Backfill"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} busy=${busy.value === 'preview'} onClick=${() => void submit('preview')}>Dry run<//>
      <${Button} kind="primary" busy=${busy.value === 'start'} onClick=${() => void submit('start')}
        >Start backfill<//
      >`}
  >
    <p class="muted">
      Exports each whole interval that overlaps the range, including intervals already exported.
    </p>
    <div class="side-by-side">
      <${TextField}
        label="From (UTC)"
        type="datetime-local"
        value=${start.value}
        onInput=${change(start)}
        error=${errorOf('start_at')}
      />
      <${TextField}
        label="To (UTC)"
        type="datetime-local"
        value=${end.value}
        onInput=${change(end)}
        error=${errorOf('end_at')}
      />
    </div>
    <label class="check">
      <input
        type="checkbox"
        checked=${allowsShrink.value}
        onChange=${(event: Event) => {
          allowsShrink.value = (event.currentTarget as HTMLInputElement).checked;
        }}
      />
      <span>Allow fewer rows: delete rows from the bucket that the source no longer has</span>
    </label>
    <div aria-live="polite">
      ${preview.value && html`<${Preview} preview=${preview.value} />`}
      ${failure.value && !isFieldError && html`<p class="tone-danger" role="alert">${failure.value.message}</p>`}
    </div>
    <${CommandLines}
      request=${{
        method: 'POST',
        path,
        body,
        command: [
          'export',
          'backfill',
          exportId,
          ...flags,
          ...(allowsShrink.value ? ['--allow-shrink'] : []),
        ],
      }}
    />
  <//>`;
}

/** What a backfill would export. */
function Preview({ preview }: { readonly preview: DryRunResponse }): View {
  const { intervals, rows, detail, start_at, end_at } = preview;
  const facts = [
    ['Intervals', formatQuantity(intervals, 'interval')],
    ['Rows in the source', rows === null ? 'not counted' : formatQuantity(rows, 'row')],
    ['Whole intervals (UTC)', formatInterval(start_at, end_at, 'UTC')],
    ...(detail === null ? [] : [['Remark', detail]]),
  ];
  return html`<${Facts} look="preview" facts=${facts} />`;
}

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
  const open = () => (isOpen.value = true);
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
        onClose=${() => (isOpen.value = false)}
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

const kindOf = ({ retry_of_run_id, retries_failed, is_repair, allow_shrink }: BackfillResponse): string => {
  if (is_repair) return 'Late rows';
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

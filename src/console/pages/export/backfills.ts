import { type Signal, useSignal } from '@preact/signals';

import type { BackfillResponse, DryRunResponse } from '../../../http/backfills/schema.ts';
import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import type { CoverageResponse } from '../../../http/console/pages/schema.ts';
import {
  type ActionRequest,
  api,
  type ExportdError,
  type ListOf,
  may,
  send,
  timezone,
  toFailure,
} from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { type Action, ActionButton, Button, CommandLines, Dialog, toast } from '../../components/actions.ts';
import { TextField } from '../../components/field.ts';
import { Moment } from '../../components/moment.ts';
import { EmptyState, Loaded, Section } from '../../components/page.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { type Column, Facts, Table } from '../../components/table.ts';
import {
  formatCount,
  formatDuration,
  formatInterval,
  formatMoment,
  formatQuantity,
  momentOfClocks,
  toClocks,
  withLocalTimes,
} from '../../formatting/format.ts';
import { type Content, html, type View } from '../../html.ts';
import { coverageFrom, type TimeRange } from './coverage.ts';
import type { PartProps } from './export_actions.ts';

/** What a backfill exports: the range of the fields, all that nothing has exported, or what failed. */
type Choice = 'range' | 'missing' | 'failed';

/**
 * Asks what a backfill exports, in the time zone of the export, counts its intervals and rows by a dry run, and starts it.
 * `range` is what it begins with; by default the newest interval.
 */
export function BackfillDialog({
  found,
  coverage,
  firstRow,
  range,
  onClose,
  onStarted,
}: {
  readonly found: BatchExportResponse;
  readonly coverage: CoverageResponse | undefined;
  /** When the source inserted its first row; null if it is not known. */
  readonly firstRow: string | null;
  readonly range: TimeRange | undefined;
  readonly onClose: () => void;
  readonly onStarted: () => unknown;
}): View {
  const { id, timezone: zone } = found;
  const newest = coverage?.newest_interval;
  const given = range ?? newest;
  const choice = useSignal<Choice>('range');
  const start = useSignal(toClocks(given?.start ?? null, zone));
  const end = useSignal(toClocks(given?.end ?? null, zone));
  const allowsShrink = useSignal(false);
  const rewrites = useSignal(false);
  const preview = useSignal<DryRunResponse | undefined>(undefined);
  const failure = useSignal<ExportdError | undefined>(undefined);
  const busy = useSignal<'preview' | 'start' | undefined>(undefined);

  const parts = coverage ? coverageFrom(coverage, firstRow, found.start_at) : [];
  const missing = parts.filter(({ kind }) => kind === 'missing' || kind === 'paused');
  const [oldest, latest] = [missing[0], missing.at(-1)];
  const failed = parts.filter(({ kind }) => kind === 'failed');
  const isMissing = choice.value === 'missing';
  const chosen: TimeRange =
    isMissing && oldest && latest
      ? { start: oldest.start, end: latest.end }
      : { start: momentOfClocks(start.value, zone) ?? '', end: momentOfClocks(end.value, zone) ?? '' };
  const backfill = backfillRequest(id, chosen, {
    only: isMissing ? 'missing' : undefined,
    rewrite: !isMissing && rewrites.value,
    allow_shrink: allowsShrink.value,
  });
  const request = choice.value === 'failed' ? retryFailedRequest(id) : backfill;
  const submit = async (what: 'preview' | 'start') => {
    busy.value = what;
    failure.value = undefined;
    try {
      if (what === 'preview') {
        preview.value = await api.post<DryRunResponse>(backfill.path, { ...backfill.body, dry_run: true });
      } else {
        await send(request.method, request.path, { body: request.body });
        toast('The backfill has started.');
        await onStarted();
        onClose();
      }
    } catch (error) {
      failure.value = toFailure(error);
    } finally {
      // What was pressed since then is still busy.
      if (busy.value === what) busy.value = undefined;
    }
  };
  const choose = (choiceNow: Choice, chosenRange?: TimeRange) => {
    choice.value = choiceNow;
    if (chosenRange)
      [start.value, end.value] = [toClocks(chosenRange.start, zone), toClocks(chosenRange.end, zone)];
    preview.value = undefined;
    failure.value = undefined;
  };
  const change = (field: typeof start) => (value: string) => {
    choose('range');
    field.value = value;
  };
  const presets = [
    newest &&
      firstRow !== null && {
        name: 'Since the first row',
        isChosen: false,
        onClick: () => choose('range', { start: firstRow, end: newest.end }),
      },
    missing.length > 0 && {
      name: 'Only what is missing',
      detail: ` (${formatQuantity(missing.length, 'range')})`,
      isChosen: isMissing,
      onClick: () => choose('missing'),
    },
    failed.length > 0 && {
      name: 'Only what failed',
      isChosen: choice.value === 'failed',
      onClick: () => choose('failed'),
    },
  ].filter((preset) => preset !== false && preset !== undefined);
  const message = withLocalTimes(failure.value?.message ?? '', zone)
    .replace('`start_at`', 'From')
    .replace('`end_at`', 'To');
  const errorOf = (field: string) => (failure.value?.attr === field ? message : undefined);
  const isFieldError = choice.value === 'range' && ['start_at', 'end_at'].includes(failure.value?.attr ?? '');
  return html`<${Dialog}
    title="Backfill"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      ${choice.value !== 'failed' && html`<${Button} busy=${busy.value === 'preview'} disabled=${busy.value === 'start'} onClick=${() => void submit('preview')}>Dry run<//>`}
      <${Button} kind="primary" busy=${busy.value === 'start'} onClick=${() => void submit('start')}
        >Start backfill<//
      >`}
  >
    <p class="muted">
      Exports each whole interval that overlaps the range. Of one that is exported, and whose rows are
      unchanged, nothing is published.
    </p>
    ${
      presets.length > 0 &&
      html`<div class="page-actions" role="group" aria-label="What is exported">
        ${presets.map(
          ({ name, detail, isChosen, onClick }) =>
            html`<button
              key=${name}
              type="button"
              class="button"
              aria-pressed=${isChosen ? 'true' : 'false'}
              onClick=${onClick}
            >
              ${name}${detail}
            </button>`,
        )}
      </div>`
    }
    <div class="side-by-side">
      <${TextField}
        label="From (${zone})"
        type="datetime-local"
        value=${choice.value === 'range' ? start.value : ''}
        onInput=${change(start)}
        error=${isFieldError ? errorOf('start_at') : undefined}
      />
      <${TextField}
        label="To (${zone})"
        type="datetime-local"
        value=${choice.value === 'range' ? end.value : ''}
        onInput=${change(end)}
        error=${isFieldError ? errorOf('end_at') : undefined}
      />
    </div>
    ${
      choice.value === 'missing' &&
      html`<ul class="muted figures">
        ${missing.map((one) => html`<li key=${one.start}>${formatInterval(one.start, one.end, zone)}</li>`)}
      </ul>`
    }
    ${choice.value === 'failed' && html`<p class="muted">Retries the newest run of each interval that failed, also of intervals that are not shown.</p>`}
    ${
      choice.value === 'range' &&
      html`<${Check} value=${rewrites}>
        Write anew what is unchanged: rows were changed in the source, or files in the bucket
      <//>`
    }
    ${
      choice.value !== 'failed' &&
      html`<${Check} value=${allowsShrink}>
        Allow fewer rows: delete rows from the bucket that the source no longer has
      <//>`
    }
    <div aria-live="polite">
      ${preview.value && html`<${Preview} totals=${preview.value} zone=${zone} />`}
      ${failure.value && !isFieldError && html`<p class="tone-danger" role="alert">${message}</p>`}
    </div>
    <${CommandLines} request=${request} />
  <//>`;
}

function Check({ value, children }: { readonly value: Signal<boolean>; readonly children: Content }): View {
  return html`<label class="check">
    <input
      type="checkbox"
      checked=${value.value}
      onChange=${(event: Event) => {
        value.value = (event.currentTarget as HTMLInputElement).checked;
      }}
    />
    <span>${children}</span>
  </label>`;
}

function backfillRequest(
  id: string,
  { start: start_at, end: end_at }: TimeRange,
  {
    only,
    rewrite,
    allow_shrink,
  }: {
    readonly only: 'missing' | undefined;
    readonly rewrite: boolean;
    readonly allow_shrink: boolean;
  },
): ActionRequest & { readonly body: Readonly<Record<string, unknown>> } {
  return {
    method: 'POST',
    path: `batch_exports/${id}/backfills/`,
    body: {
      start_at,
      end_at,
      ...(only ? { only } : {}),
      ...(rewrite ? { rewrite } : {}),
      ...(allow_shrink ? { allow_shrink } : {}),
    },
    command: [
      'export',
      'backfill',
      id,
      '--start-at',
      start_at,
      '--end-at',
      end_at,
      ...(only ? ['--only', only] : []),
      ...(rewrite ? ['--rewrite'] : []),
      ...(allow_shrink ? ['--allow-shrink'] : []),
    ],
  };
}

const retryFailedRequest = (id: string): ActionRequest => ({
  method: 'POST',
  path: 'batch_exports/retry_failed/',
  body: { batch_export: id },
  command: ['export', 'retry', id, '--failed'],
});

/** What a backfill would export, and how long that takes at the pace of the newest runs. */
function Preview({
  totals: { intervals, rows, seconds, detail, start_at, end_at },
  zone,
}: {
  readonly totals: DryRunResponse;
  readonly zone: string;
}): View {
  const facts = [
    ['Intervals', formatQuantity(intervals, 'interval')],
    ['Rows in the source', rows === null ? 'not counted' : formatQuantity(rows, 'row')],
    ...(seconds === null ? [] : [['Takes about', formatDuration(seconds)]]),
    [`Whole intervals (${zone})`, formatInterval(start_at, end_at, zone)],
    ...(detail === null ? [] : [['Remark', detail]]),
  ];
  return html`<${Facts} look="preview" facts=${facts} />`;
}

/** The backfills of an export with their progress. */
export function Backfills({ found, reload, onBackfill }: PartProps): View {
  const backfills = useResource<ListOf<BackfillResponse>>(`batch_exports/${found.id}/backfills/`, {
    query: { limit: 50 },
    polls: true,
  });
  const reloadAll = async () => {
    await Promise.all([backfills.reload(), reload()]);
  };
  const start =
    may('batch_export:write') && html`<${Button} kind="primary" onClick=${() => onBackfill()}>Backfill…<//>`;
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
        ${actionsOf(backfill, reload).map((action, place) => html`<${ActionButton} key=${place} action=${action} />`)}
      </div>`,
  },
];

const kindOf = ({
  retry_of_run_id,
  retries_failed,
  is_repair,
  only,
  rewrite,
  allow_shrink,
}: BackfillResponse): string => {
  if (is_repair) return 'Late rows';
  const kind = retry_of_run_id !== null ? 'Retry' : retries_failed ? 'Retry of failed runs' : 'Backfill';
  return [
    kind,
    only === 'missing' && 'only what was missing',
    rewrite && 'writes anew',
    allow_shrink && 'may remove rows',
  ]
    .filter((part) => typeof part === 'string')
    .join(', ');
};

function Progress({ backfill: { progress } }: { readonly backfill: BackfillResponse }): View {
  if (!progress) return html`<span class="muted">–</span>`;
  const { total_runs, finished_runs, unchanged_runs, failed_runs, retrying_runs, records_completed } =
    progress;
  const { done_at } = progress;
  const remarks = [
    `${formatCount(finished_runs)} of ${formatQuantity(total_runs, 'interval')}`,
    formatQuantity(records_completed, 'row'),
    unchanged_runs > 0 && `${formatCount(unchanged_runs)} unchanged`,
    failed_runs > 0 && `${formatCount(failed_runs)} failed`,
    retrying_runs > 0 && `${formatCount(retrying_runs)} retrying`,
    done_at !== null && `done about ${formatMoment(done_at, timezone.value)}`,
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
  // Both at one place: the button that was pressed keeps the focus.
  if (status === 'Running')
    return [{ ...actionOf('pause'), label: 'Pause', done: 'The backfill is paused.' }, cancel];
  if (status === 'Paused')
    return [{ ...actionOf('unpause'), label: 'Unpause', done: 'The backfill continues.' }, cancel];
  return [];
}

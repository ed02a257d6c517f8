import { useSignal } from '@preact/signals';
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
  formatInterval,
  formatQuantity,
  momentOfClocks,
  toClocks,
  withLocalTimes,
} from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { coverageFrom, durationOf, type TimeRange } from './coverage.ts';
import type { PartProps } from './export_actions.ts';

/** What a backfill exports: the range of the fields, every range that nothing has exported, or what failed. */
type Choice = 'range' | 'missing' | 'failed';

/** The ranges that "only what is missing" starts backfills of, the newest first. */
const maxMissing = 20;

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
  const preview = useSignal<DryRunTotals | undefined>(undefined);
  const failure = useSignal<ExportdError | undefined>(undefined);
  const busy = useSignal<'preview' | 'start' | undefined>(undefined);

  const parts = coverage ? coverageFrom(coverage, firstRow, found.start_at) : [];
  const missing = parts
    .filter(({ kind }) => kind === 'missing' || kind === 'paused')
    .toReversed()
    .slice(0, maxMissing);
  const failed = parts.filter(({ kind }) => kind === 'failed');
  const ranges: readonly TimeRange[] =
    choice.value === 'missing'
      ? missing
      : [{ start: momentOfClocks(start.value, zone) ?? '', end: momentOfClocks(end.value, zone) ?? '' }];
  const requests = choice.value === 'failed' ? [retryFailedRequest(id)] : ranges.map(requestOf);
  const [first] = requests;

  function requestOf({ start: start_at, end: end_at }: TimeRange): ActionRequest {
    const shrink = allowsShrink.value;
    return {
      method: 'POST',
      path: `batch_exports/${id}/backfills/`,
      body: { start_at, end_at, ...(shrink ? { allow_shrink: true } : {}) },
      command: [
        'export',
        'backfill',
        id,
        '--start-at',
        start_at,
        '--end-at',
        end_at,
        ...(shrink ? ['--allow-shrink'] : []),
      ],
    };
  }
  const submit = async (what: 'preview' | 'start') => {
    busy.value = what;
    failure.value = undefined;
    try {
      if (what === 'preview') {
        preview.value = await countAll(id, ranges);
      } else {
        for (const { method, path, body } of requests) await send(method, path, { body });
        toast(
          requests.length === 1 ? 'The backfill has started.' : `${requests.length} backfills have started.`,
        );
        await onStarted();
        onClose();
      }
    } catch (error) {
      failure.value = toFailure(error);
    } finally {
      busy.value = undefined;
    }
  };
  const choose = (chosen: Choice, chosenRange?: TimeRange) => {
    choice.value = chosen;
    if (chosenRange)
      [start.value, end.value] = [toClocks(chosenRange.start, zone), toClocks(chosenRange.end, zone)];
    preview.value = undefined;
    failure.value = undefined;
  };
  const change = (field: typeof start) => (value: string) => {
    choose('range');
    field.value = value;
  };
  const presets: readonly (readonly [label: string, isChosen: boolean, choose: () => void])[] = [
    ...(newest && firstRow !== null
      ? [['Since the first row', false, () => choose('range', { start: firstRow, end: newest.end })] as const]
      : []),
    ...(missing.length > 0
      ? [
          [
            `Only what is missing (${formatQuantity(missing.length, 'range')})`,
            choice.value === 'missing',
            () => choose('missing'),
          ] as const,
        ]
      : []),
    ...(failed.length > 0
      ? [['Only what failed', choice.value === 'failed', () => choose('failed')] as const]
      : []),
  ];
  const message = withLocalTimes(failure.value?.message ?? '', zone)
    .replace('`start_at`', 'From')
    .replace('`end_at`', 'To');
  const errorOf = (field: string) => (failure.value?.attr === field ? message : undefined);
  const isFieldError = choice.value === 'range' && ['start_at', 'end_at'].includes(failure.value?.attr ?? '');
  return html`<${Dialog}
    title="Backfill"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      ${choice.value !== 'failed' && html`<${Button} busy=${busy.value === 'preview'} onClick=${() => void submit('preview')}>Dry run<//>`}
      <${Button} kind="primary" busy=${busy.value === 'start'} onClick=${() => void submit('start')}
        >Start backfill<//
      >`}
  >
    <p class="muted">
      Exports each whole interval that overlaps the range, including intervals already exported.
    </p>
    ${
      presets.length > 0 &&
      html`<div class="page-actions" role="group" aria-label="What is exported">
        ${presets.map(
          ([label, isChosen, onClick]) =>
            html`<button
              key=${label}
              type="button"
              class="button"
              aria-pressed=${isChosen ? 'true' : 'false'}
              onClick=${onClick}
            >
              ${label}
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
      choice.value !== 'failed' &&
      html`<label class="check">
        <input
          type="checkbox"
          checked=${allowsShrink.value}
          onChange=${(event: Event) => {
            allowsShrink.value = (event.currentTarget as HTMLInputElement).checked;
          }}
        />
        <span>Allow fewer rows: delete rows from the bucket that the source no longer has</span>
      </label>`
    }
    <div aria-live="polite">
      ${preview.value && html`<${Preview} totals=${preview.value} coverage=${coverage} zone=${zone} />`}
      ${failure.value && !isFieldError && html`<p class="tone-danger" role="alert">${message}</p>`}
    </div>
    ${first && html`<${CommandLines} request=${first} />`}
  <//>`;
}

const retryFailedRequest = (id: string): ActionRequest => ({
  method: 'POST',
  path: 'batch_exports/retry_failed/',
  body: { batch_export: id },
  command: ['export', 'retry', id, '--failed'],
});

/** What dry runs of several ranges have counted. `rows` is null if one of them was not counted. */
type DryRunTotals = Pick<DryRunResponse, 'intervals' | 'rows' | 'detail' | 'start_at' | 'end_at'>;

async function countAll(exportId: string, ranges: readonly TimeRange[]): Promise<DryRunTotals | undefined> {
  let totals: DryRunTotals | undefined;
  for (const { start: start_at, end: end_at } of ranges) {
    const one = await api.post<DryRunResponse>(`batch_exports/${exportId}/backfills/`, {
      start_at,
      end_at,
      dry_run: true,
    });
    totals = totals
      ? {
          intervals: totals.intervals + one.intervals,
          rows: totals.rows === null || one.rows === null ? null : totals.rows + one.rows,
          detail: totals.detail ?? one.detail,
          // The ranges are the newest first.
          start_at: one.start_at,
          end_at: totals.end_at,
        }
      : one;
  }
  return totals;
}

/** What a backfill would export, and how long that takes at the pace of the newest runs. */
function Preview({
  totals: { intervals, rows, detail, start_at, end_at },
  coverage,
  zone,
}: {
  readonly totals: DryRunTotals;
  readonly coverage: CoverageResponse | undefined;
  readonly zone: string;
}): View {
  const duration = coverage ? durationOf(intervals, coverage) : null;
  const facts = [
    ['Intervals', formatQuantity(intervals, 'interval')],
    ['Rows in the source', rows === null ? 'not counted' : formatQuantity(rows, 'row')],
    ...(duration === null ? [] : [['Takes about', duration]]),
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

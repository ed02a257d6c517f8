import type { RunResponse } from '../../http/runs/schema.ts';
import { timezone } from '../api/session.ts';
import { formatBytes } from '../formatting/bytes.ts';
import { formatCount } from '../formatting/count.ts';
import { formatDuration } from '../formatting/duration.ts';
import { formatInterval } from '../formatting/moment.ts';
import { html, type Content, type View } from '../html.ts';
import { ActionButton, type Action } from './action_button.ts';
import { Moment } from './moment.ts';
import { StatusBadge } from './status_badge.ts';
import { Table, type Column } from './table.ts';

/** Whether a run has not ended. */
export const isActive = ({ status }: Pick<RunResponse, 'status'>): boolean =>
  status === 'Starting' || status === 'Running';

/** Exports the interval of a run again. */
export const retryAction = (
  run: Pick<RunResponse, 'id' | 'batch_export'>,
  onDone: () => unknown,
  { allowShrink = false }: { readonly allowShrink?: boolean } = {},
): Action => ({
  label: allowShrink ? 'Retry and allow fewer rows' : 'Retry',
  method: 'POST',
  path: `batch_exports/${run.batch_export}/runs/${run.id}/retry/`,
  body: allowShrink ? { allow_shrink: true } : {},
  command: ['export', 'retry', run.batch_export, run.id, ...(allowShrink ? ['--allow-shrink'] : [])],
  done: 'A run of the interval was created.',
  onDone,
  ...(allowShrink && {
    kind: 'danger',
    confirm: {
      title: 'Publish what the source has now?',
      text: 'Rows that the bucket has and the source no longer has are deleted from the bucket.',
    },
  }),
});

/** Cancels a run that has not ended. */
export const cancelRunAction = (
  run: Pick<RunResponse, 'id' | 'batch_export'>,
  onDone: () => unknown,
): Action => ({
  label: 'Cancel',
  kind: 'danger',
  method: 'POST',
  path: `batch_exports/${run.batch_export}/runs/${run.id}/cancel/`,
  body: {},
  command: ['run', 'cancel', run.batch_export, run.id],
  confirm: {
    title: 'Cancel this run?',
    text: 'Nothing of it is published. Its interval stays without these rows until somebody retries it.',
  },
  done: 'The run was cancelled.',
  onDone,
});

/** Runs, newest first. `detailOf` makes the address of what is known of one; `showsInterval` adds the interval's column. */
export function RunTable({
  runs,
  detailOf,
  showsInterval = true,
  onChange,
  empty,
}: {
  readonly runs: readonly RunResponse[];
  readonly detailOf: (run: RunResponse) => string;
  readonly showsInterval?: boolean;
  readonly onChange: () => unknown;
  readonly empty?: Content;
}): View {
  const columns: readonly Column<RunResponse>[] = [
    ...(showsInterval
      ? [
          {
            header: 'Interval',
            render: (run: RunResponse) =>
              html`<a class="figures" href=${detailOf(run)}
                >${formatInterval(run.data_interval_start, run.data_interval_end, timezone.value)}</a
              >`,
          },
        ]
      : []),
    {
      header: 'Status',
      render: (run) =>
        html`<div class="run-status">
          <${StatusBadge} status=${run.status} />
          ${run.latest_error !== null && html`<p class="run-error">${run.latest_error}</p>`}
        </div>`,
    },
    { header: 'Generation', align: 'right', secondary: true, render: (run) => run.generation ?? '–' },
    { header: 'Rows', align: 'right', render: (run) => formatCount(run.records_completed) },
    { header: 'Bytes', align: 'right', secondary: true, render: (run) => formatBytes(run.bytes) },
    { header: 'Took', align: 'right', render: (run) => formatDuration(secondsOf(run)) },
    { header: 'By', secondary: true, render: (run) => (run.backfill_id === null ? 'Schedule' : 'Backfill') },
    {
      header: 'Started',
      render: (run) => html`<a href=${detailOf(run)}><${Moment} at=${run.created_at} /></a>`,
    },
    {
      header: 'Actions',
      render: (run) =>
        html`<${ActionButton}
          action=${isActive(run) ? cancelRunAction(run, onChange) : retryAction(run, onChange)}
        />`,
    },
  ];
  return html`<${Table}
    caption="Runs"
    columns=${columns}
    rows=${runs}
    rowKey=${({ id }: RunResponse) => id}
    empty=${empty}
  />`;
}

/** Seconds from the creation of a run to its end; null while it is active. */
const secondsOf = ({ created_at, finished_at }: RunResponse): number | null =>
  finished_at === null ? null : (Date.parse(finished_at) - Date.parse(created_at)) / 1_000;

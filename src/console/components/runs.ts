import type { RunStepsResponse } from '../../http/console/pages/schema.ts';
import type { LogLineResponse } from '../../http/intervals/schema.ts';
import type { RunResponse } from '../../http/runs/schema.ts';
import { type ListOf, timezone } from '../api/client.ts';
import { useResource } from '../api/resource.ts';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatInterval,
  formatMoment,
} from '../formatting/format.ts';
import { type Content, html, type View } from '../html.ts';
import { type Action, ActionButton } from './actions.ts';
import { Moment } from './moment.ts';
import { messageInWords } from './in_words.ts';
import { EmptyState, Loaded } from './page.ts';
import { Plot } from './plot.ts';
import { StatusBadge } from './statuses.ts';
import { type Column, Table } from './table.ts';

/** Whether a run has not ended. */
const isActive = ({ status }: Pick<RunResponse, 'status'>): boolean =>
  status === 'Starting' || status === 'Running';

/** Exports the interval of a run again. */
export const retryAction = (
  run: Pick<RunResponse, 'id' | 'batch_export'>,
  onDone: () => unknown,
): Action => ({
  label: 'Retry',
  method: 'POST',
  path: `batch_exports/${run.batch_export}/runs/${run.id}/retry/`,
  body: {},
  command: ['export', 'retry', run.batch_export, run.id],
  done: 'A run of the interval was created.',
  onDone,
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
    text: 'Nothing of it is published. Its interval stays without these rows until you retry it.',
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
          ${run.latest_error !== null && html`<p class="run-error">${messageInWords(run.latest_error)}</p>`}
          ${run.status === 'Completed' && run.status_detail !== null && html`<p class="muted">${run.status_detail}</p>`}
        </div>`,
    },
    { header: 'Generation', align: 'right', secondary: true, render: (run) => run.generation ?? '–' },
    { header: 'Rows', align: 'right', render: (run) => formatCount(published(run, run.records_completed)) },
    {
      header: 'Bytes',
      align: 'right',
      secondary: true,
      render: (run) => formatBytes(published(run, run.bytes)),
    },
    { header: 'Took', align: 'right', render: (run) => formatDuration(secondsOf(run)) },
    { header: 'By', secondary: true, render: (run) => (run.backfill_id === null ? 'Schedule' : 'Backfill') },
    {
      header: 'Started',
      render: (run) => html`<a href=${detailOf(run)}><${Moment} at=${run.created_at} /></a>`,
    },
    {
      header: 'Actions',
      render: (run) =>
        // By key: what asks whether to cancel a run never becomes a retry when the run ends.
        isActive(run)
          ? html`<${ActionButton} key="cancel" action=${cancelRunAction(run, onChange)} />`
          : html`<${ActionButton} key="retry" action=${retryAction(run, onChange)} />`,
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

/** An amount of a run; null if it ended without publishing it. */
const published = (run: RunResponse, amount: number): number | null =>
  isActive(run) || run.manifest_key !== null ? amount : null;

/** Seconds from the creation of a run to its end; null while it is active. */
const secondsOf = ({ created_at, finished_at }: RunResponse): number | null =>
  finished_at === null ? null : (Date.parse(finished_at) - Date.parse(created_at)) / 1_000;

/** What a run did, step by step, beside its lines of the log. */
export function RunSteps({ exportId, runId }: { readonly exportId: string; readonly runId: string }): View {
  const steps = useResource<RunStepsResponse>(`console/batch_exports/${exportId}/runs/${runId}/steps/`, {
    polls: true,
  });
  const lines = useResource<ListOf<LogLineResponse>>(`batch_exports/${exportId}/logs/`, {
    query: { run_id: runId, limit: 200 },
    polls: true,
  });
  return html`<div class="run-detail">
    <${Loaded} resource=${steps}>${(found: RunStepsResponse) => html`<${Throughput} steps=${found} />`}<//>
    <div class="side-by-side">
      <section>
        <h3>Steps</h3>
        <${Loaded} resource=${steps}>${(found: RunStepsResponse) => html`<${StepList} steps=${found} />`}<//>
      </section>
      <section>
        <h3>Log</h3>
        <${Loaded} resource=${lines}>
          ${(found: ListOf<LogLineResponse>) =>
            html`<${LogLines}
              lines=${found.results}
              empty="The run has logged nothing."
              timeOf=${timeOfDay}
            />`}
        <//>
      </section>
    </div>
  </div>`;
}

function Throughput({ steps: { throughput } }: { readonly steps: RunStepsResponse }): View {
  // One bin says nothing about time.
  if (throughput.length < 3) return null;
  return html`<${Plot}
    label="Rows per second"
    unit="count"
    height=${140}
    times=${throughput.map(({ at }) => Date.parse(at) / 1_000)}
    series=${[{ label: 'Rows/s', kind: 'bars', values: throughput.map(({ rows, seconds }) => rows / seconds) }]}
  />`;
}

function StepList({ steps }: { readonly steps: RunStepsResponse }): View {
  return html`<ol class="steps">
      ${steps.steps.map(
        (step, index) =>
          html`<li key=${index} class="step-${step.level}">
            <time class="figures" datetime=${step.at}>${timeOfDay(step.at)}</time>
            <div>
              <p>
                ${step.summary}
                ${step.range !== null && step.range > 0 && html`<span class="muted"> (range ${step.range + 1})</span>`}
              </p>
              ${step.detail !== null && html`<p class="muted step-detail">${messageInWords(step.detail)}</p>`}
            </div>
          </li>`,
      )}
    </ol>
    ${!steps.is_complete && html`<p class="muted">Later steps are not listed.</p>`}`;
}

/** Lines of the log of an export, newest first. */
export function LogLines({
  lines,
  empty,
  timeOf = dateAndTime,
}: {
  readonly lines: readonly LogLineResponse[];
  readonly empty: string;
  readonly timeOf?: (at: string) => string;
}): View {
  if (lines.length === 0) return html`<${EmptyState} title=${empty} />`;
  return html`<ol class="steps log-lines">
    ${lines.map(
      (line, index) =>
        html`<li key=${index} class="step-${line.level.toLowerCase()}">
          <time class="figures" datetime=${line.timestamp}>${timeOf(line.timestamp)}</time>
          <p><span class="log-level">${line.level}</span> ${messageInWords(line.message)}</p>
        </li>`,
    )}
  </ol>`;
}

const dateAndTime = (at: string): string => formatMoment(at, timezone.value);

/** `14:05:09`: a run rarely takes longer than a day. */
const timeOfDay = (at: string): string => formatMoment(at, timezone.value).slice(11);

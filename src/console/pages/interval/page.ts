import '../../components/shared.ts';
import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import type { IntervalDetailResponse } from '../../../http/intervals/detail_schema.ts';
import { useResource } from '../../api/resource.ts';
import { timezone, useTimezone } from '../../api/client.ts';
import { type Action, ActionButton } from '../../components/actions.ts';
import { messageInWords } from '../../components/in_words.ts';
import { EmptyState, LoadedPage, Page, Section } from '../../components/page.ts';
import { retryAction, RunSteps, RunTable } from '../../components/runs.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { formatInterval } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { currentQuery } from '../../router/location.ts';
import { paths, type PageProps } from '../../router/paths.ts';
import { DifferenceNotice } from './difference.ts';
import { Files } from './files.ts';
import { Generations, IntervalFacts, ManifestView } from './interval_facts.ts';
import { ComparisonWithSource } from './comparison.ts';

/** An interval: its generations, files, manifest, comparison and runs. */
export default function IntervalPage({ params }: PageProps): View {
  const { id = '', start = '' } = params;
  const path = `batch_exports/${id}/intervals/${encodeURIComponent(start)}/`;
  const detail = useResource<IntervalDetailResponse>(path, { polls: true });
  const found = useResource<BatchExportResponse>(`batch_exports/${id}/`);
  useTimezone(found.data?.timezone);
  const parent = { title: 'Show the export', path: paths.export(id) };
  return html`<${LoadedPage} resource=${detail} what="interval" parent=${parent}>
    ${(data: IntervalDetailResponse) =>
      html`<${FoundInterval}
        exportId=${id}
        exportName=${found.data?.name ?? 'Export'}
        detail=${data}
        reload=${detail.reload}
      />`}
  <//>`;
}

function FoundInterval({
  exportId,
  exportName,
  detail,
  reload,
}: {
  readonly exportId: string;
  readonly exportName: string;
  readonly detail: IntervalDetailResponse;
  readonly reload: () => Promise<void>;
}): View {
  const { interval, runs, generations } = detail;
  const { data_interval_start: start, data_interval_end: end } = interval;
  const [newest] = runs;
  const selected = currentQuery.value.get('run');
  const detailOf = ({ id }: { readonly id: string }) => `${paths.interval(exportId, start)}?run=${id}`;
  return html`<${Page}
    title=${formatInterval(start, end, timezone.value)}
    parents=${[
      { title: 'Exports', path: paths.exports },
      { title: exportName, path: paths.export(exportId) },
    ]}
    subtitle=${html`<span class="export-subtitle">
      <${StatusBadge} status=${interval.status} isExplained />
      <${Neighbours} exportId=${exportId} detail=${detail} />
    </span>`}
    actions=${html`<${Actions} exportId=${exportId} detail=${detail} reload=${reload} />`}
  >
    <${DifferenceNotice} exportId=${exportId} detail=${detail} reload=${reload} />
    ${
      interval.latest_error !== null &&
      !interval.held &&
      // Its newest run was held, and a person has decided about that.
      !(interval.decision !== null && interval.status === 'exported') &&
      html`<div class="notice notice-danger"><p>${messageInWords(interval.latest_error)}</p></div>`
    }
    <${IntervalFacts} detail=${detail} />
    ${
      newest === undefined &&
      html`<${EmptyState} title="No run has exported this interval">${whyWithoutRun(detail)}<//>`
    }
    ${generations.length > 0 && html`<${Generations} generations=${generations} />`}
    ${detail.manifest && html`<${Files} exportId=${exportId} detail=${detail} />`}
    ${detail.manifest && html`<${ComparisonWithSource} exportId=${exportId} detail=${detail} reload=${reload} />`}
    ${detail.manifest && html`<${ManifestView} manifest=${detail.manifest} />`}
    ${
      newest !== undefined &&
      html`<${Section} title="Runs">
        <${RunTable} runs=${runs} detailOf=${detailOf} showsInterval=${false} onChange=${reload} />
        <div class="card">
          <${RunSteps} key=${selected ?? newest.id} exportId=${exportId} runId=${selected ?? newest.id} />
        </div>
      <//>`
    }
  <//>`;
}

/** Links to the intervals before and after, and to the Temporal UI. */
function Neighbours({
  exportId,
  detail: { previous, next, runs },
}: {
  readonly exportId: string;
  readonly detail: IntervalDetailResponse;
}): View {
  const temporal = runs[0]?.temporal_ui ?? null;
  return html`
    ${previous !== null && html`<a href=${paths.interval(exportId, previous)} rel="prev">Previous</a>`}
    ${next !== null && html`<a href=${paths.interval(exportId, next)} rel="next">Next</a>`}
    ${temporal !== null && html`<a href=${temporal} target="_blank" rel="noreferrer">Workflow in Temporal</a>`}
  `;
}

/** Retry, or a backfill of the interval while it has no run. */
function Actions({
  exportId,
  detail: { interval, runs },
  reload,
}: {
  readonly exportId: string;
  readonly detail: IntervalDetailResponse;
  readonly reload: () => Promise<void>;
}): View {
  const [newest] = runs;
  if (newest) {
    const isRunning = newest.finished_at === null;
    return html`<${ActionButton} action=${{ ...retryAction(newest, reload), disabled: isRunning }} />`;
  }
  const { data_interval_start: start_at, data_interval_end: end_at } = interval;
  const backfill: Action = {
    label: 'Backfill',
    method: 'POST',
    path: `batch_exports/${exportId}/backfills/`,
    body: { start_at, end_at },
    command: ['export', 'backfill', exportId, '--start-at', start_at, '--end-at', end_at],
    done: 'The backfill has started.',
    onDone: reload,
  };
  return html`<${ActionButton} action=${backfill} />`;
}

const whyWithoutRun = ({ interval: { status, intervals } }: IntervalDetailResponse): string => {
  const what = intervals > 1 ? `These ${intervals} intervals` : 'It';
  if (status === 'due') return `${what} ended, and the schedule has not created a run yet.`;
  if (status === 'paused')
    return `${what} ended while the export was paused. A backfill exports what was missed.`;
  return `${what} ended before the start or after the end of the export.`;
};

import type { RunResponse } from '../../../http/runs/schema.ts';
import { type ListOf, timezone } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { Button } from '../../components/actions.ts';
import { SelectField, TextField } from '../../components/field.ts';
import { EmptyState, Loaded, Section } from '../../components/page.ts';
import { RunSteps, RunTable } from '../../components/runs.ts';
import { formatInterval, formatQuantity, momentOfClocks } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import { paths } from '../../router/paths.ts';
import type { PartProps } from './export_actions.ts';

/** The address of what is known of a run. */
export const runPath = ({ batch_export, id }: Pick<RunResponse, 'batch_export' | 'id'>): string =>
  `${paths.export(batch_export)}?tab=runs&run=${id}`;

const runsPageSize = 25;
const dayMs = 86_400_000;

const creators = [
  { value: '', label: 'All' },
  { value: 'schedule', label: 'Schedule' },
  { value: 'backfill', label: 'Backfills and retries' },
];

const statusChoices = [
  { value: '', label: 'All' },
  { value: 'Starting,Running', label: 'Active' },
  { value: 'Completed', label: 'Completed' },
  { value: 'Failed,FailedRetryable,TimedOut,Terminated', label: 'Failed' },
  { value: 'Cancelled', label: 'Cancelled' },
];

/** The runs of an export, and the steps of one of them. */
export function Runs({ found, reload }: PartProps): View {
  const status = currentQuery.value.get('status');
  const created_by = currentQuery.value.get('by');
  const cursor = currentQuery.value.get('cursor');
  const selected = currentQuery.value.get('run');
  const [from, to] = ['from', 'to'].map((name) => currentQuery.value.get(name) ?? '');
  const start = startOfDay(from ?? '', 0);
  const end = startOfDay(to ?? '', 1);
  const runs = useResource<ListOf<RunResponse>>(`batch_exports/${found.id}/runs/`, {
    query: { limit: runsPageSize, status, created_by, cursor, start, end },
    polls: true,
    keepsData: true,
  });
  const isFiltered = [status, created_by, start, end].some((value) => value !== null && value !== undefined);
  const reloadAll = async () => {
    await Promise.all([runs.reload(), reload()]);
  };
  return html`
    ${selected !== null && html`<${SelectedRun} key=${selected} exportId=${found.id} runId=${selected} />`}
    <${Section}
      title="Runs"
      actions=${html`<${TextField}
          label="From"
          type="date"
          value=${from}
          onInput=${(value: string) => setQuery({ from: value, cursor: null })}
        />
        <${TextField}
          label="To"
          type="date"
          value=${to}
          onInput=${(value: string) => setQuery({ to: value, cursor: null })}
        />
        <${SelectField}
          label="Status"
          value=${status ?? ''}
          options=${statusChoices}
          onChange=${(value: string) => setQuery({ status: value, cursor: null })}
        />
        <${SelectField}
          label="By"
          value=${created_by ?? ''}
          options=${creators}
          onChange=${(value: string) => setQuery({ by: value, cursor: null })}
        />`}
    >
      <${Loaded} resource=${runs}>
        ${(page: ListOf<RunResponse>) =>
          html`<${RunTable}
              runs=${page.results}
              detailOf=${runPath}
              onChange=${reloadAll}
              empty=${html`<${EmptyState} title="No runs">
                ${isFiltered ? 'No run has this status, this cause and an interval of these days.' : 'The schedule creates one when an interval has ended.'}
              <//>`}
            />
            <p class="muted figures">${formatQuantity(page.count, 'run')}</p>
            <${Pages} page=${page} />`}
      <//>
    <//>
  `;
}

/** When a day of the project's clocks starts, or `days` later; undefined without a day. */
const startOfDay = (date: string, days: number): string | undefined => {
  const day = Date.parse(date);
  if (Number.isNaN(day)) return undefined;
  return momentOfClocks(new Date(day + days * dayMs).toISOString().slice(0, 16), timezone.value);
};

/** Buttons to the neighbours of a page of runs. */
function Pages({ page }: { readonly page: ListOf<RunResponse> }): View {
  const to = (url: string | null) => () =>
    setQuery({ cursor: url === null ? null : new URL(url).searchParams.get('cursor') });
  if (page.previous === null && page.next === null) return null;
  return html`<div class="page-actions">
    <${Button} disabled=${page.previous === null} onClick=${to(page.previous)}>Newer<//>
    <${Button} disabled=${page.next === null} onClick=${to(page.next)}>Older<//>
  </div>`;
}

function SelectedRun({ exportId, runId }: { readonly exportId: string; readonly runId: string }): View {
  const run = useResource<RunResponse>(`batch_exports/${exportId}/runs/${runId}/`, { polls: true });
  const close = () => setQuery({ run: null });
  return html`<${Loaded} resource=${run}>
    ${(found: RunResponse) =>
      html`<${Section}
        title="Run of ${formatInterval(found.data_interval_start, found.data_interval_end, timezone.value)}"
        actions=${html`<${Button} href=${paths.interval(exportId, found.data_interval_start)}
            >Open interval<//
          >
          ${
            found.temporal_ui !== null &&
            html`<a href=${found.temporal_ui} target="_blank" rel="noreferrer">Temporal</a>`
          }
          <${Button} onClick=${close}>Close<//>`}
      >
        <div class="card"><${RunSteps} exportId=${exportId} runId=${runId} /></div>
      <//>`}
  <//>`;
}

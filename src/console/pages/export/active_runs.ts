import type { ActiveRun, ActiveRunsResponse } from '../../../http/console/schema.ts';
import { useResource } from '../../api/resource.ts';
import { timezone } from '../../api/session.ts';
import { ActionButton } from '../../components/action_button.ts';
import { Moment } from '../../components/moment.ts';
import { Section } from '../../components/page.ts';
import { cancelRunAction } from '../../components/run_table.ts';
import { StatusBadge } from '../../components/status_badge.ts';
import { formatBytes } from '../../formatting/bytes.ts';
import { formatCount, formatQuantity } from '../../formatting/count.ts';
import { formatDuration } from '../../formatting/duration.ts';
import { formatInterval } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';
import { runPath } from './run_path.ts';

/** The runs that are active now, with their progress and speed. Nothing while none is. */
export function ActiveRuns({
  exportId,
  onChange,
}: {
  readonly exportId: string;
  readonly onChange: () => unknown;
}): View {
  const active = useResource<ActiveRunsResponse>(`console/batch_exports/${exportId}/active_runs/`, {
    live: exportId,
  });
  if (!active.data || active.data.runs.length === 0) return null;
  return html`<${Section} title="Running now">
    <ul class="active-runs">
      ${active.data.runs.map((run) => html`<${RunCard} key=${run.run.id} active=${run} onChange=${onChange} />`)}
    </ul>
    ${active.data.total > active.data.runs.length && html`<p class="muted">The oldest ${active.data.runs.length} of ${formatCount(active.data.total)} are shown.</p>`}
  <//>`;
}

function RunCard({
  active,
  onChange,
}: {
  readonly active: ActiveRun;
  readonly onChange: () => unknown;
}): View {
  const { run } = active;
  const { records_completed: done, records_total_count: total } = run;
  return html`<li class="card active-run">
    <div class="active-run-header">
      <a class="figures" href=${runPath(run)}
        >${formatInterval(run.data_interval_start, run.data_interval_end, timezone.value)}</a
      >
      <${StatusBadge} status=${run.status} />
      <${ActionButton} action=${cancelRunAction(run, onChange)} />
    </div>
    ${
      total !== null &&
      total > 0 &&
      html`<progress
        class="progress"
        max=${total}
        value=${Math.min(done, total)}
        aria-label="Exported rows"
      />`
    }
    <p class="figures muted">${progressOf(active)}<${Moment} at=${run.created_at} /></p>
    ${run.latest_error !== null && html`<p class="run-error">${run.latest_error}</p>`}
  </li>`;
}

/** `12,000 of 50,000 rows · 4,100 rows/s · 1.2 MB/s · about 9 s left · attempt 2 · started `. */
function progressOf(active: ActiveRun): string {
  const { run, attempts } = active;
  const total = run.records_total_count;
  const done =
    total === null
      ? 'Waits for the source to settle'
      : `${formatCount(run.records_completed)} of ${formatQuantity(total, 'row')}`;
  return `${done}${speedOf(active)}${attempts > 1 ? ` · attempt ${attempts}` : ''} · started `;
}

/** ` · 41,000 rows/s · 3.2 MB/s · about 12 s left`; empty before the first part. */
function speedOf({ run, rows_per_second: rows, bytes_per_second: bytes }: ActiveRun): string {
  if (rows === null || rows === 0) return '';
  const left = (run.records_total_count ?? 0) - run.records_completed;
  const rest = left > 0 ? ` · about ${formatDuration(Math.ceil(left / rows))} left` : '';
  return ` · ${formatCount(rows)} rows/s · ${formatBytes(bytes)}/s${rest}`;
}

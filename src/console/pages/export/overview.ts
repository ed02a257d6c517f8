import { useMemo } from 'preact/hooks';
import type { LagResponse } from '../../../http/batch_exports/schema.ts';
import type { TimelineResponse } from '../../../http/console/schema.ts';
import { useResource } from '../../api/resource.ts';
import { timezone } from '../../api/session.ts';
import { ActionButton } from '../../components/action_button.ts';
import { Button } from '../../components/button.ts';
import { EmptyState } from '../../components/empty_state.ts';
import { Loaded } from '../../components/loaded.ts';
import { Moment } from '../../components/moment.ts';
import { Section } from '../../components/page.ts';
import { retryAction } from '../../components/run_table.ts';
import { StatusBadge } from '../../components/status_badge.ts';
import { formatCount, formatQuantity } from '../../formatting/count.ts';
import { formatDuration } from '../../formatting/duration.ts';
import { formatInterval } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import { paths } from '../../router/paths.ts';
import { ActiveRuns } from './active_runs.ts';
import { Calendar } from './calendar.ts';
import { spanMsOf } from './calendar_layout.ts';
import { LandingPlots } from './landing_plots.ts';
import type { PartProps } from './part_props.ts';

/** How an export does: what runs, what is missing, its intervals as a calendar, and when they landed. */
export function Overview({ found, reload }: PartProps): View {
  const spanMs = spanMsOf(found.interval);
  const before = currentQuery.value.get('before');
  const query = useMemo(() => {
    const end = before === null ? Date.now() : Date.parse(before);
    return {
      after: new Date(end - spanMs).toISOString(),
      ...(before === null ? {} : { before: new Date(end).toISOString() }),
    };
  }, [before, spanMs]);
  const timeline = useResource<TimelineResponse>(`console/batch_exports/${found.id}/timeline/`, {
    query,
    live: found.id,
  });
  const older = () => setQuery({ before: query.after });
  const newer = () => {
    const next = Date.parse(before ?? '') + spanMs;
    setQuery({ before: next >= Date.now() ? null : new Date(next).toISOString() });
  };
  return html`
    <${Facts} found=${found} />
    <${ActiveRuns} exportId=${found.id} onChange=${reload} />
    ${found.lag && found.lag.gaps.length > 0 && html`<${Gaps} exportId=${found.id} lag=${found.lag} onChange=${reload} />`}
    <${Section}
      title="Intervals"
      actions=${html`<${Button} onClick=${older}>Older<//>
        <${Button} disabled=${before === null} onClick=${newer}>Newer<//>`}
    >
      <${Loaded} resource=${timeline}>
        ${(data: TimelineResponse) =>
          data.entries.length === 0
            ? html`<${EmptyState} title="No interval has ended in this time">
                The first one is exported when it has ended. For the past, start a backfill.
              <//>`
            : html`<${Calendar} found=${found} entries=${data.entries} />
                <${LandingPlots} exportId=${found.id} entries=${data.entries} />`}
      <//>
    <//>
  `;
}

function Facts({ found }: Pick<PartProps, 'found'>): View {
  const { lag } = found;
  return html`<dl class="facts card">
    <div>
      <dt>Behind</dt>
      <dd>
        ${
          lag === null
            ? 'unknown'
            : lag.intervals === 0
              ? 'up to date'
              : `${formatQuantity(lag.intervals, 'interval')}, ${formatDuration(lag.seconds)}`
        }
      </dd>
    </div>
    <div>
      <dt>Exported until</dt>
      <dd><${Moment} at=${lag?.last_completed_interval_end} exact /></dd>
    </div>
    <div>
      <dt>Gaps</dt>
      <dd>${formatCount(lag?.gaps.length ?? null)}</dd>
    </div>
    <div>
      <dt>Newest run</dt>
      <dd><${Moment} at=${found.latest_runs[0]?.created_at} /></dd>
    </div>
    <div>
      <dt>Created</dt>
      <dd><${Moment} at=${found.created_at} /></dd>
    </div>
    ${
      found.paused &&
      html`<div>
        <dt>Paused</dt>
        <dd><${Moment} at=${found.last_paused_at} /></dd>
      </div>`
    }
  </dl>`;
}

/** How many gaps are listed before the calendar, which shows all of them. */
const listedGaps = 5;

function Gaps({
  exportId,
  lag,
  onChange,
}: {
  readonly exportId: string;
  readonly lag: LagResponse;
  readonly onChange: () => unknown;
}): View {
  const rest = lag.gaps.length - listedGaps;
  return html`<${Section} title="Gaps">
    <ul class="gaps card">
      ${lag.gaps.slice(0, listedGaps).map(
        ({ data_interval_start: start, data_interval_end: end, run_id, status }) =>
          html`<li key=${start}>
            <a class="figures" href=${paths.interval(exportId, start)}
              >${formatInterval(start, end, timezone.value)}</a
            >
            <${StatusBadge} status=${status} />
            <${ActionButton} action=${retryAction({ id: run_id, batch_export: exportId }, onChange)} />
          </li>`,
      )}
      ${rest > 0 && html`<li class="muted">and ${formatCount(rest)} more: a backfill of their time fills them at once.</li>`}
    </ul>
  <//>`;
}

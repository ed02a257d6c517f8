import { useMemo } from 'preact/hooks';
import type { LagResponse } from '../../../http/batch_exports/schema.ts';
import type {
  ActiveRun,
  ActiveRunsResponse,
  CoverageResponse,
  CoverageSegment,
  TimelineResponse,
} from '../../../http/console/pages/schema.ts';
import { may, timezone } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { ActionButton, Button } from '../../components/actions.ts';
import { Moment } from '../../components/moment.ts';
import { messageInWords } from '../../components/in_words.ts';
import { EmptyState, Loaded, Section } from '../../components/page.ts';
import { Plot } from '../../components/plot.ts';
import { cancelRunAction, retryAction } from '../../components/runs.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { Facts } from '../../components/table.ts';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatInterval,
  formatQuantity,
} from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { currentQuery, navigate, setQuery } from '../../router/location.ts';
import { paths } from '../../router/paths.ts';
import { Calendar } from './calendar.ts';
import { spanMsOf, type TimelineEntry, withMissing } from './calendar_layout.ts';
import { CoverageBar, coverageFrom, durationOf, type TimeRange } from './coverage.ts';
import type { PartProps } from './export_actions.ts';
import { runPath } from './runs.ts';

/** The runs that are active now, with their progress and speed. Nothing while none is. */
function ActiveRuns({
  exportId,
  onChange,
}: {
  readonly exportId: string;
  readonly onChange: () => unknown;
}): View {
  const active = useResource<ActiveRunsResponse>(`console/batch_exports/${exportId}/active_runs/`, {
    polls: true,
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
    ${run.latest_error !== null && html`<p class="run-error">${messageInWords(run.latest_error)}</p>`}
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

/**
 * How long after its end each interval landed in the bucket, if the schedule exported it, and how many rows each has. A click
 * opens the interval.
 */
function IntervalPlots({
  exportId,
  entries,
}: {
  readonly exportId: string;
  readonly entries: readonly TimelineEntry[];
}): View {
  const landed = useMemo(() => entries.filter(({ landed_at }) => landed_at !== null), [entries]);
  const counted = useMemo(() => entries.filter(({ rows }) => rows !== null), [entries]);
  const delays = useMemo(
    () => [{ label: 'After its end', kind: 'points' as const, values: landed.map(delayOf) }],
    [landed],
  );
  const rows = useMemo(
    () => [{ label: 'Rows', kind: 'bars' as const, values: counted.map((entry) => entry.rows) }],
    [counted],
  );
  const landedTimes = useMemo(() => endsOf(landed), [landed]);
  const countedTimes = useMemo(() => endsOf(counted), [counted]);
  const openOf = (shown: readonly TimelineEntry[]) => (index: number) => {
    const entry = shown[index];
    if (entry) navigate(paths.interval(exportId, entry.data_interval_start));
  };
  return html`<div class="side-by-side">
    ${
      landed.length > 1 &&
      html`<${Plot}
        label="Landing time of scheduled runs after the end of the interval"
        unit="seconds"
        times=${landedTimes}
        series=${delays}
        onSelect=${openOf(landed)}
      />`
    }
    ${
      counted.length > 1 &&
      html`<${Plot}
        label="Rows of each interval"
        unit="count"
        times=${countedTimes}
        series=${rows}
        onSelect=${openOf(counted)}
      />`
    }
  </div>`;
}

const endsOf = (entries: readonly TimelineEntry[]): number[] =>
  entries.map(({ data_interval_end }) => Date.parse(data_interval_end) / 1_000);

/** Seconds from the end of an interval to its first manifest. */
const delayOf = ({ landed_at, data_interval_end }: TimelineEntry): number | null =>
  landed_at === null ? null : (Date.parse(landed_at) - Date.parse(data_interval_end)) / 1_000;

/** How an export does: what runs, what is missing, its intervals as a calendar, and when they landed. */
export function Overview({ found, coverage, firstRow, reload, onBackfill }: PartProps): View {
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
    polls: true,
  });
  const older = () => setQuery({ before: query.after });
  const newer = () => {
    const next = Date.parse(before ?? '') + spanMs;
    setQuery({ before: next >= Date.now() ? null : new Date(next).toISOString() });
  };
  return html`
    <${ExportFacts} found=${found} coverage=${coverage} firstRow=${firstRow} onBackfill=${onBackfill} />
    <${ActiveRuns} exportId=${found.id} onChange=${reload} />
    ${found.lag && found.lag.gaps.length > 0 && html`<${Gaps} exportId=${found.id} lag=${found.lag} onChange=${reload} />`}
    <${Coverage} found=${found} coverage=${coverage} firstRow=${firstRow} onBackfill=${onBackfill} />
    <${Section}
      title="Intervals"
      actions=${html`<${Button} onClick=${older}>Older<//>
        <${Button} disabled=${before === null} onClick=${newer}>Newer<//>`}
    >
      <${Loaded} resource=${timeline}>
        ${(data: TimelineResponse) =>
          html`<${Intervals}
            found=${found}
            entries=${data.entries}
            segments=${coverage.data?.segments}
            after=${query.after}
            before=${query.before ?? data.now}
            onBackfill=${onBackfill}
          />`}
      <//>
    <//>
  `;
}

function Intervals({
  found,
  entries,
  segments = noSegments,
  after,
  before,
  onBackfill,
}: Pick<PartProps, 'found' | 'onBackfill'> & {
  readonly entries: readonly TimelineEntry[];
  readonly segments: readonly CoverageSegment[] | undefined;
  readonly after: string;
  readonly before: string;
}): View {
  const shown = useMemo(
    () => withMissing(entries, segments, after, before),
    [entries, segments, after, before],
  );
  if (shown.length === 0) return html`<${NoIntervals} found=${found} />`;
  return html`<${Calendar} found=${found} entries=${shown} onBackfill=${onBackfill} />
    <${IntervalPlots} exportId=${found.id} entries=${entries} />`;
}

const noSegments: readonly CoverageSegment[] = [];

/** What is exported from the first row of the source to now. Nothing until it is known. */
function Coverage({ found, coverage, firstRow, onBackfill }: Omit<PartProps, 'reload'>): View {
  if (!coverage.data) return null;
  const parts = coverageFrom(coverage.data, firstRow.at, found.start_at);
  if (parts.length === 0) return null;
  return html`<${Section} title="Coverage">
    <${CoverageBar}
      parts=${parts}
      timezone=${found.timezone}
      detail=${firstRow.detail}
      onSelect=${onBackfill}
    />
  <//>`;
}

/** What stands in place of the calendar while it has nothing to show. */
function NoIntervals({ found }: Pick<PartProps, 'found'>): View {
  const newest = found.lag?.last_completed_interval_end ?? null;
  const backfills = `${paths.export(found.id)}?tab=backfills`;
  if (newest === null)
    return html`<${EmptyState} title="No interval has ended in this time">
      <p>
        The first one is exported when it has ended. For the past, <a href=${backfills}>start a backfill</a>.
      </p>
    <//>`;
  return html`<${EmptyState} title="Nothing was exported of this time">
    <p>The newest exported interval ended <${Moment} at=${newest} exact />.</p>
    <${Button} onClick=${() => setQuery({ before: newest })}>Show it<//>
  <//>`;
}

function ExportFacts({ found, coverage, firstRow, onBackfill }: Omit<PartProps, 'reload'>): View {
  const { condition } = found;
  const exported = html`<${Exported}
    found=${found}
    coverage=${coverage}
    firstRow=${firstRow}
    onBackfill=${onBackfill}
  />`;
  const facts = [
    ['Exported', exported, 'wide'],
    // The notice above says what is not well.
    ...(condition.cause === 'paused' ? [['Condition', condition.summary]] : []),
    ['Newest run', html`<${Moment} at=${found.latest_runs[0]?.created_at} />`],
    ['Created', html`<${Moment} at=${found.created_at} />`],
  ];
  return html`<${Facts} look="card" facts=${facts} />`;
}

/** What is exported and what is not, and a backfill of the newest time that nothing exports. */
function Exported({
  found: { condition, start_at },
  coverage: { data },
  firstRow,
  onBackfill,
}: Omit<PartProps, 'reload'>): View {
  const missing =
    data && coverageFrom(data, firstRow.at, start_at).findLast(({ kind }) => kind === 'missing');
  return html`${data?.sentence ?? condition.coverage?.sentence}
  ${
    data &&
    missing &&
    may('batch_export:write') &&
    html` <${Button} onClick=${() => onBackfill({ start: missing.start, end: missing.end })}>
      Backfill${aboutDurationOf(missing, data)}
    <//>`
  }`;
}

/** `, about 3 min`, at the pace of the newest runs. */
function aboutDurationOf({ start, end }: TimeRange, data: CoverageResponse): string {
  const length = Date.parse(data.newest_interval.end) - Date.parse(data.newest_interval.start);
  const duration = durationOf((Date.parse(end) - Date.parse(start)) / length, data);
  return duration === null ? '' : `, about ${duration}`;
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

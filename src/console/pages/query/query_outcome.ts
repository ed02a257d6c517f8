import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { stringifyJson } from '../../../client/client.ts';
import { timezone } from '../../api/client.ts';
import { Button, saveFile } from '../../components/actions.ts';
import { EmptyState } from '../../components/page.ts';
import { Plot, seriesColor, SeriesSign } from '../../components/plot.ts';
import { formatDuration, formatNumber, formatQuantity, withLocalTimes } from '../../formatting/format.ts';
import { type Content, html, type View } from '../../html.ts';
import { isSame } from './query_draft.ts';
import type { AnyQuery, QueryResult, QueryState } from './query_run.ts';
import { type Chart, chartOf } from './result_chart.ts';
import { ResultGrid } from './result_grid.ts';
import { csvOf } from './result_values.ts';

type Bars = Extract<Chart, { kind: 'bars' }>;

/** A result as lines or stacked bars over time, or as bars. */
function ResultChart({ chart, isBars }: { readonly chart: Chart; readonly isBars: boolean }): View {
  if (chart.kind === 'none')
    return html`<p class="muted" role="status">No chart, because ${chart.because}</p>`;
  return html`<div class="query-result">
    ${
      chart.kind === 'bars'
        ? html`<${BarChart} chart=${chart} />`
        : html`<${Plot}
            label=${chart.label}
            times=${chart.times}
            series=${chart.series.map((one) => ({ ...one, kind: isBars ? 'bars' : 'line' }))}
            unit="number"
            height=${280}
            isStacked=${isBars}
          />`
    }
    ${chart.omitted && html`<p class="muted">${chart.omitted}</p>`}
  </div>`;
}

/** A bar for each name, in parts of the colours of its series. */
function BarChart({ chart: { label, names, series } }: { readonly chart: Bars }): View {
  const sums = names.map((_, index) =>
    series.reduce((sum, { values }) => sum + Math.abs(values[index] ?? 0), 0),
  );
  const largest = Math.max(...sums, Number.MIN_VALUE);
  const isStacked = series.length > 1;
  return html`<figure class="bar-chart card">
    <figcaption>${label}</figcaption>
    ${
      isStacked &&
      html`<ul class="legend">
        ${series.map(
          (one, index) =>
            html`<li key=${one.label}>
              <${SeriesSign} index=${index} isBar=${true} />
              <span class="legend-name" title=${one.label}>${one.label}</span>
            </li>`,
        )}
      </ul>`
    }
    <dl>
      ${names.map((name, index) => {
        const total = series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
        return html`<div class="bar-row" key=${name}>
          <dt title=${name}>${name}</dt>
          <dd>
            <span class="bar" style=${{ '--share': (sums[index] ?? 0) / largest }} aria-hidden="true">
              ${series.map(({ label: part, values }, order) => {
                const value = values[index] ?? 0;
                const look = { flexGrow: Math.abs(value), background: `var(${seriesColor(order)})` };
                const tip = isStacked ? `${part}: ${formatNumber(value)}` : formatNumber(value);
                return value !== 0 && html`<span key=${part} title=${tip} style=${look}></span>`;
              })}
            </span>
            <span class="figures">${formatNumber(total)}</span>
          </dd>
        </div>`;
      })}
    </dl>
  </figure>`;
}

const seconds = (elapsedMs: number): string => formatDuration(elapsedMs / 1_000);

/** How a query runs or has ended, with its rows. */
export function QueryOutcome({
  state,
  query,
}: {
  readonly state: QueryState;
  /** The query as it is now, which may differ from the one of the result; null while it is no query. */
  readonly query: AnyQuery | null;
}): View {
  // It stays from one run to the next.
  const chosen = useSignal<Look | null>(null);
  switch (state.status) {
    case 'idle':
      return null;
    case 'running':
      return html`<${RunningTime} startedAt=${state.startedAt} />`;
    case 'cancelled':
      return html`<p class="muted" role="status">Cancelled after ${seconds(state.elapsedMs)}.</p>`;
    case 'failed': {
      const { message, attr } = state.failure;
      const field =
        attr === null || attr === 'query__query' ? '' : `${attr.split('__').slice(1).join('.')}: `;
      return html`<div class="notice notice-danger" role="alert">
        <pre class="query-error">${field}${withLocalTimes(message, timezone.value)}</pre>
      </div>`;
    }
    case 'completed':
      return html`<${Completed}
        result=${state.result}
        chosen=${chosen}
        isInsight=${state.query.kind === 'TrendsQuery' || state.query.kind === 'FunnelsQuery'}
        elapsedMs=${state.elapsedMs}
        isOld=${!isSame(state.query, query)}
      />`;
  }
}

const tickMs = 100;

function RunningTime({ startedAt }: { readonly startedAt: number }): View {
  const elapsed = useSignal(0);
  useEffect(() => {
    const timer = window.setInterval(() => {
      elapsed.value = Date.now() - startedAt;
    }, tickMs);
    return () => window.clearInterval(timer);
  }, [startedAt]);
  // The time is not announced ten times a second.
  return html`<p class="muted">
    <span role="status">Running</span> <span class="figures">${(elapsed.value / 1_000).toFixed(1)} s</span>
  </p>`;
}

/** `12 rows in 340 ms`. */
function summaryOf({ results, hasMore }: QueryResult, elapsedMs: number): string {
  const summary = `${formatQuantity(results.length, 'row')} in ${seconds(elapsedMs)}`;
  return hasMore ? `${summary}; more rows were cut: a LIMIT returns up to 10,000` : summary;
}

type Look = 'table' | 'lines' | 'bars' | 'chart';

/** Buttons of which one is pressed. */
export function Choice({
  label,
  options,
  value,
  onChoose,
}: {
  readonly label: string;
  readonly options: readonly (readonly [value: string, name: Content])[];
  readonly value: string;
  readonly onChoose: (value: never) => void;
}): View {
  return html`<div class="choice" role="group" aria-label=${label}>
    ${options.map(
      ([option, name]) =>
        html`<button
          key=${option}
          type="button"
          class="button button-quiet"
          aria-pressed=${option === value ? 'true' : 'false'}
          onClick=${() => onChoose(option as never)}
        >
          ${name}
        </button>`,
    )}
  </div>`;
}

function Completed({
  result,
  chosen,
  isInsight,
  elapsedMs,
  isOld,
}: {
  readonly result: QueryResult;
  readonly chosen: Signal<Look | null>;
  readonly isInsight: boolean;
  readonly elapsedMs: number;
  readonly isOld: boolean;
}): View {
  const zone = timezone.value;
  const chart = useMemo(() => chartOf(result, zone), [result, zone]);
  const charts: readonly (readonly [Look, string])[] =
    chart.kind === 'times'
      ? [
          ['lines', 'Lines'],
          ['bars', 'Bars'],
        ]
      : [['chart', 'Chart']];
  const drawn = chart.kind === 'times' ? (result.isBars ? 'bars' : 'lines') : 'chart';
  const isChart = chosen.value === null ? isInsight && chart.kind !== 'none' : chosen.value !== 'table';
  const wanted = charts.some(([look]) => look === chosen.value) ? (chosen.value ?? drawn) : drawn;
  const look = isChart ? wanted : 'table';
  return html`<div class="query-result">
    <div class="workbench-bar">
      <p class="figures" role="status">
        ${summaryOf(result, elapsedMs)}${isOld && html`<strong>. The query has changed since: run it again.</strong>`}
      </p>
      <span class="page-actions">
        <${Button} onClick=${() => saveFile('query-result.csv', 'text/csv', csvOf(result))}>Download CSV<//>
        <${Button} onClick=${() => saveFile('query-result.json', 'application/json', jsonOf(result))}
          >Download JSON<//
        >
      </span>
      <${Choice}
        label="Show the result as"
        options=${[['table', 'Table'], ...charts]}
        value=${look}
        onChoose=${(next: Look) => (chosen.value = next)}
      />
    </div>
    ${result.notice && html`<p class="notice" role="status">${withLocalTimes(result.notice, zone)}</p>`}
    ${
      result.results.length === 0
        ? html`<${EmptyState} title="No rows"
            >The query ran and found nothing. Check its dates and conditions.<//
          >`
        : isChart
          ? html`<${ResultChart} chart=${chart} isBars=${look === 'bars'} />`
          : html`<${ResultGrid} result=${result} />`
    }
  </div>`;
}

const jsonOf = ({ columns, results }: QueryResult): string =>
  stringifyJson(results.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]]))));

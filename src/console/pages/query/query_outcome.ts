import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { EmptyState } from '../../components/empty_state.ts';
import { formatQuantity } from '../../formatting/count.ts';
import { formatDuration } from '../../formatting/duration.ts';
import { html, type View } from '../../html.ts';
import { chartOf, type QueryResult } from './query_result.ts';
import type { QueryState } from './query_run.ts';
import { ResultChart } from './result_chart.ts';
import { ResultTable } from './result_table.ts';

const seconds = (elapsedMs: number): string => formatDuration(elapsedMs / 1_000);

/** How a query runs or has ended, with its rows. */
export function QueryOutcome({ state }: { readonly state: QueryState }): View {
  switch (state.status) {
    case 'idle':
      return null;
    case 'running':
      return html`<${RunningTime} startedAt=${state.startedAt} />`;
    case 'cancelled':
      return html`<p class="muted" role="status">Cancelled after ${seconds(state.elapsedMs)}.</p>`;
    case 'failed':
      return html`<div class="notice notice-danger" role="alert">
        <pre class="query-error">${state.failure.message}</pre>
      </div>`;
    case 'completed':
      return html`<${Completed} result=${state.result} elapsedMs=${state.elapsedMs} />`;
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
  return hasMore ? `${summary}; more rows were cut` : summary;
}

function Completed({
  result,
  elapsedMs,
}: {
  readonly result: QueryResult;
  readonly elapsedMs: number;
}): View {
  const isChart = useSignal(false);
  const chart = chartOf(result);
  const show = (wanted: boolean) => () => {
    isChart.value = wanted;
  };
  return html`<div class="query-result">
    <div class="workbench-bar">
      <p class="figures" role="status">${summaryOf(result, elapsedMs)}</p>
      ${
        chart &&
        html`<div class="choice" role="group" aria-label="Show the result as">
          <button
            class="button button-quiet"
            aria-pressed=${isChart.value ? 'false' : 'true'}
            onClick=${show(false)}
          >
            Table
          </button>
          <button
            class="button button-quiet"
            aria-pressed=${isChart.value ? 'true' : 'false'}
            onClick=${show(true)}
          >
            Chart
          </button>
        </div>`
      }
    </div>
    ${
      result.results.length === 0
        ? html`<${EmptyState} title="No rows"
            >The query ran and found nothing. Check its dates and conditions.<//
          >`
        : chart && isChart.value
          ? html`<${ResultChart} chart=${chart} />`
          : html`<${ResultTable} result=${result} />`
    }
  </div>`;
}

import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { Button, saveFile } from '../../components/actions.ts';
import { EmptyState } from '../../components/page.ts';
import { Plot } from '../../components/plot.ts';
import { type Column, Table } from '../../components/table.ts';
import { formatCount, formatDuration, formatQuantity } from '../../formatting/format.ts';
import { stringifyJson } from '../../../client/client.ts';
import { html, type View } from '../../html.ts';
import {
  type Chart,
  chartOf,
  csvOf,
  type QueryResult,
  type QueryState,
  sortedBy,
  textOfValue,
  valueKindOf,
} from './query_run.ts';

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** A result as lines over time, or as bars. */
function ResultChart({ chart }: { readonly chart: Chart }): View {
  if (chart.kind === 'times')
    return html`<${Plot}
      label=${chart.series.map(({ label }) => label).join(', ')}
      times=${chart.times}
      series=${chart.series}
      unit="count"
      height=${280}
    />`;
  const largest = Math.max(...chart.bars.map(({ value }) => Math.abs(value)), 1);
  return html`<figure class="bar-chart card">
    <figcaption>${chart.label}</figcaption>
    <dl>
      ${chart.bars.map(
        ({ name, value }, index) =>
          html`<div class="bar-row" key=${index}>
            <dt title=${name}>${name}</dt>
            <dd>
              <span class="bar" style=${{ '--share': Math.abs(value) / largest }} aria-hidden="true"></span>
              <span class="figures">${numbers.format(value)}</span>
            </dd>
          </div>`,
      )}
    </dl>
  </figure>`;
}

type NumberedRow = readonly [number: number, row: readonly unknown[]];

/** Rows that are drawn at once: thousands of cells make a browser slow. */
const pageRows = 200;
/** Longer values are cut, so that a row is one line; a button shows the whole. */
const maxShown = 60;

interface Sorting {
  readonly column: number;
  readonly direction: 'ascending' | 'descending';
}

/** The rows of a result. */
function ResultTable({ result }: { readonly result: QueryResult }): View {
  const shown = useSignal(pageRows);
  const sorting = useSignal<Sorting | null>(null);
  const { column, direction } = sorting.value ?? {};
  const sorted = useMemo(
    () =>
      column === undefined || direction === undefined ? result.results : sortedBy(result, column, direction),
    [result, column, direction],
  );
  const columns = result.types.map(([name, type], index): Column<NumberedRow> => ({
    header: distinctName(result.types, name, index),
    align: valueKindOf(type) === 'number' ? 'right' : 'left',
    render: ([, row]) => html`<${Value} value=${row[index]} isInteger=${/^(Nullable\()?U?Int/.test(type)} />`,
    sorted: index === column ? direction : undefined,
    onSort: () => {
      const isAscending = index === column && direction === 'ascending';
      sorting.value = { column: index, direction: isAscending ? 'descending' : 'ascending' };
    },
  }));
  const rows = sorted.slice(0, shown.value).map((row, number): NumberedRow => [number, row]);
  const hidden = result.results.length - rows.length;
  return html`<div class="query-result">
    <${Table}
      caption="Result of the query"
      columns=${columns}
      rows=${rows}
      rowKey=${([number]: NumberedRow) => String(number)}
    />
    ${
      hidden > 0 &&
      html`<${Button} onClick=${() => (shown.value += pageRows)}
        >Show ${Math.min(pageRows, hidden)} more of ${hidden}<//
      >`
    }
  </div>`;
}

/** Columns can have the same name; their headers cannot. */
function distinctName(types: QueryResult['types'], name: string, index: number): string {
  const earlier = types.slice(0, index).filter(([other]) => other === name).length;
  return earlier === 0 ? name : `${name} (${earlier + 1})`;
}

function Value({ value, isInteger }: { readonly value: unknown; readonly isInteger: boolean }): View {
  const isWhole = useSignal(false);
  if (value === null || value === undefined) return html`<span class="muted">null</span>`;
  const text = isInteger ? withSeparators(textOfValue(value)) : textOfValue(value);
  if (text.length <= maxShown) return html`<span>${text}</span>`;
  if (isWhole.value) return html`<div class="whole-value">${text}</div>`;
  return html`<span
    >${text.slice(0, maxShown)}…
    <${Button} kind="quiet" onClick=${() => (isWhole.value = true)}
      >Show all ${formatCount(text.length)} characters<//
    >
  </span>`;
}

/** Of integers that are longer than a year: `12,345`. */
const withSeparators = (digits: string): string =>
  /^-?\d{5,}$/.test(digits) ? BigInt(digits).toLocaleString('en') : digits;

const seconds = (elapsedMs: number): string => formatDuration(elapsedMs / 1_000);

/** How a query runs or has ended, with its rows. */
export function QueryOutcome({
  state,
  query,
}: {
  readonly state: QueryState;
  /** The query as it is now, which may differ from the one of the result. */
  readonly query: string;
}): View {
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
      return html`<${Completed}
        result=${state.result}
        elapsedMs=${state.elapsedMs}
        isOld=${state.query !== query}
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

function Completed({
  result,
  elapsedMs,
  isOld,
}: {
  readonly result: QueryResult;
  readonly elapsedMs: number;
  readonly isOld: boolean;
}): View {
  const isChart = useSignal(false);
  const chart = chartOf(result);
  const show = (wanted: boolean) => () => (isChart.value = wanted);
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

const jsonOf = ({ columns, results }: QueryResult): string =>
  stringifyJson(results.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]]))));

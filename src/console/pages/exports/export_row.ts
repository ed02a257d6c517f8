import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { OverviewItem } from '../../../http/console/pages/schema.ts';
import { type IntervalCell, IntervalCells } from '../../components/interval_cells.ts';
import { Moment } from '../../components/moment.ts';
import { messageInWords } from '../../components/in_words.ts';
import { ConditionBadge, statusOfLetter } from '../../components/statuses.ts';
import { formatBytes, formatQuantity, formatShortCount } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { paths } from '../../router/paths.ts';

const height = 20;
const barWidth = 4;
const barGap = 1;

/** Values over time as small bars, the newest at the right. `label` says what they are, and their sum. */
function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }): View {
  const max = Math.max(...values, 1);
  const width = values.length * (barWidth + barGap);
  const bars = values.map((value, index) => {
    // A bar of what is not zero is never invisible.
    const size = value === 0 ? 0.5 : Math.max(1.5, (value / max) * height);
    const top = (height - size).toFixed(1);
    return `M${index * (barWidth + barGap)} ${top}h${barWidth}v${size.toFixed(1)}h-${barWidth}z`;
  });
  return html`<svg
    class="sparkline"
    role="img"
    aria-label=${label}
    viewBox="0 0 ${width} ${height}"
    width=${width}
    height=${height}
  >
    <title>${label}</title>
    <path d=${bars.join('')} />
  </svg>`;
}

/** An export in the list of all. `isNamed`: its trouble is named above the list, once for all exports that have it. */
export function ExportRow({
  item,
  isNamed,
}: {
  readonly item: OverviewItem;
  readonly isNamed: boolean;
}): View {
  const { id, name, model, interval, destination, condition, behind_intervals: behind } = item;
  const rows = sumOf(item.rows_by_hour);
  const bytes = sumOf(item.bytes_by_hour);
  return html`<tr class="export-row">
    <td class="export-name">
      <a href=${paths.export(id)}>${name}</a>
      <div class="muted">${model}, ${nameOfInterval(interval)}, ${destination}</div>
      <div class="muted" title=${condition.coverage?.sentence}>${condition.coverage?.sentence}</div>
      ${condition.severity !== 'ok' && !isNamed && html`<div class="export-problem export-problem-${condition.severity}">${messageInWords(condition.summary)}</div>`}
    </td>
    <td data-label="Status">
      <${ConditionBadge} cause=${condition.cause} />
    </td>
    <td data-label="Fresh until">
      <div>
        <${Moment} at=${item.fresh_until} />
        ${behind !== null && behind > 0 && html`<div class="muted">${formatQuantity(behind, 'interval')} missing</div>`}
      </div>
    </td>
    <td class="export-cells" data-label="Last 48 intervals">
      <${IntervalCells}
        cells=${cellsOf(item)}
        pathOf=${({ start, status }: IntervalCell) => (status === 'missing' ? paths.export(id) : paths.interval(id, start))}
      />
    </td>
    <td class="right" data-label="Last day">
      <div class="export-volume">
        <${Sparkline}
          values=${item.rows_by_hour}
          label="${formatShortCount(rows)} rows, ${formatBytes(bytes)} in the last day, by hour"
        />
        <span class="figures"
          ><span>${formatShortCount(rows)} rows</span> <span class="muted">${formatBytes(bytes)}</span></span
        >
      </div>
    </td>
    <td data-label="Next run"><${Moment} at=${item.next_run_at} /></td>
  </tr>`;
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** `hour` as people say it; `every 5 minutes` is said already. */
const nameOfInterval = (interval: string): string =>
  interval.startsWith('every') ? interval.replace('every 1 minutes', 'every minute') : `every ${interval}`;

/** The intervals of the compact form. */
function cellsOf({ cells }: OverviewItem): IntervalCell[] {
  if (cells.start === null) return [];
  const seconds = cells.lengths.flatMap(([length, count]) => Array<number>(count).fill(length));
  let start = Date.parse(cells.start);
  return Array.from(cells.statuses, (letter, index) => {
    const end = start + (seconds[index] ?? 0) * 1_000;
    const cell = {
      start: new Date(start).toISOString(),
      end: new Date(end).toISOString(),
      status: statusOfLetter(letter),
    };
    start = end;
    return cell;
  });
}

/** The value as of the last pause of this length, so that nothing is read with every key. */
export function usePaused<Value>(value: Value, pauseMs: number): Value {
  const paused = useSignal(value);
  useEffect(() => {
    const timer = window.setTimeout(() => {
      paused.value = value;
    }, pauseMs);
    return () => window.clearTimeout(timer);
  }, [value, pauseMs]);
  return paused.value;
}

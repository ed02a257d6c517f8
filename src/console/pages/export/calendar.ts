import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import { IntervalLegend } from '../../components/interval_cells.ts';
import { may, timezone as projectZone } from '../../api/client.ts';
import { CellShape, intervalLooks } from '../../components/statuses.ts';
import { formatInterval, formatQuantity } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { paths } from '../../router/paths.ts';
import {
  layOutCalendar,
  type CalendarCell,
  type CalendarRow,
  type CalendarEntry,
} from './calendar_layout.ts';
import type { TimeRange } from './coverage.ts';

/**
 * The interval ledger of an export as a matrix, oldest row first, in the export's time zone. Each cell opens its interval, or
 * a backfill where nothing was exported.
 * Tab enters the matrix at its newest cell, and the arrow keys move between cells.
 */
export function Calendar({
  found,
  entries,
  onBackfill,
}: {
  readonly found: Pick<BatchExportResponse, 'id' | 'interval' | 'timezone'>;
  readonly entries: readonly CalendarEntry[];
  /** Called with an interval that nothing has exported. */
  readonly onBackfill: (range: TimeRange) => void;
}): View {
  const { id, interval, timezone } = found;
  const layout = useMemo(() => layOutCalendar(entries, interval, timezone), [entries, interval, timezone]);
  const statuses = [...new Set(entries.map(({ status }) => status))];
  const newest = layout.rows.at(-1)?.cells.at(-1);
  const columns = isNarrow.value ? columnsOfLine(layout.columns) : layout.columns;
  const template = { gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` };
  // A line keeps its place when it has no cells, so that the header is right for the next one.
  const lines = {
    gridTemplateRows: `repeat(${Math.ceil(layout.columns / columns)}, minmax(1.125rem, auto))`,
  };
  return html`<div class="calendar card">
    <table class="calendar-table" onKeyDown=${moveFocus}>
      <caption class="visually-hidden">
        Intervals, ${timezone}. The arrow keys move between them.
      </caption>
      ${
        layout.headers.length > 0 &&
        html`<thead>
          <tr>
            <td></td>
            <td>
              <div class="calendar-row calendar-header muted figures" style=${template} aria-hidden="true">
                ${layout.headers.map(
                  ({ column, label }) =>
                    column < columns &&
                    html`<span key=${column} style=${{ gridColumn: String(column + 1) }}>${label}</span>`,
                )}
              </div>
            </td>
          </tr>
        </thead>`
      }
      <tbody>
        ${layout.rows.map(
          (row) =>
            html`<tr key=${row.label}>
              <th scope="row" class="figures">${row.label}</th>
              <td>
                <div class="calendar-row" style=${{ ...template, ...lines }}>
                  <${RowCells}
                    columns=${columns}
                    row=${row}
                    newest=${newest}
                    exportId=${id}
                    timezone=${timezone}
                    onBackfill=${onBackfill}
                  />
                </div>
              </td>
            </tr>`,
        )}
      </tbody>
    </table>
    <${IntervalLegend} statuses=${statuses} />
    ${timezone !== projectZone.value && html`<p class="muted">Days and hours of ${timezone}</p>`}
  </div>`;
}

/** Where lines of a calendar are broken, so that a thumb can hit its cells. */
const narrowWindow = window.matchMedia('(max-width: 40rem)');
const isNarrow = signal(narrowWindow.matches);
narrowWindow.addEventListener('change', ({ matches }) => (isNarrow.value = matches));

/** The cells of a line on a narrow window. */
const maxColumns = 12;

/** Equal parts of a row where that is possible. */
function columnsOfLine(columns: number): number {
  const lines = Math.ceil(columns / maxColumns);
  const equal = [lines, lines + 1, lines + 2].find((count) => columns % count === 0);
  return equal === undefined ? maxColumns : columns / equal;
}

function RowCells({
  columns: perLine,
  row,
  newest,
  exportId,
  timezone,
  onBackfill,
}: {
  readonly columns: number;
  readonly row: CalendarRow;
  readonly newest: CalendarCell | undefined;
  readonly exportId: string;
  readonly timezone: string;
  readonly onBackfill: (range: TimeRange) => void;
}): View {
  return html`${row.cells.map((cell) => {
    const title = titleOf(cell, timezone);
    const { status } = cell.entry;
    const shared = {
      class: `calendar-cell tone-${intervalLooks[status].tone}`,
      style: {
        gridColumn: `${(cell.column % perLine) + 1} / span ${Math.min(cell.columns, perLine - (cell.column % perLine))}`,
        gridRow: String(Math.floor(cell.column / perLine) + 1),
      },
      title,
      'aria-label': title,
      tabindex: cell === newest ? 0 : -1,
    };
    const shape = html`<${CellShape} status=${status} />`;
    if (status !== 'missing')
      return html`<a key=${cell.start} ...${shared} href=${paths.interval(exportId, cell.start)}
        >${shape}</a
      >`;
    const backfill = () => onBackfill(rangeOf(cell));
    return html`<button
      key=${cell.start}
      type="button"
      ...${shared}
      aria-disabled=${may('batch_export:write') ? undefined : 'true'}
      onClick=${may('batch_export:write') && backfill}
    >
      ${shape}
    </button>`;
  })}`;
}

/** All that is missing around a cell. */
const rangeOf = ({ entry }: CalendarCell): TimeRange => ({
  start: entry.data_interval_start,
  end: entry.data_interval_end,
});

/** `2026-11-23 14:00 – 15:00: exported, 4,933 rows, generation 2`. */
function titleOf({ start, end, entry }: CalendarCell, timezone: string): string {
  const facts = [
    intervalLooks[entry.status].label.toLowerCase(),
    entry.reason,
    entry.rows !== null && formatQuantity(entry.rows, 'row'),
    entry.generation !== null && entry.generation > 1 && `generation ${entry.generation}`,
  ].filter((fact) => typeof fact === 'string');
  return `${formatInterval(start, end, timezone)}: ${facts.join(', ')}`;
}

/** Moves the focus between cells: to the next one, or to the nearest one of the next row. */
function moveFocus(event: KeyboardEvent): void {
  if (!(event.currentTarget instanceof HTMLElement) || !(event.target instanceof HTMLElement)) return;
  const cells = [...event.currentTarget.querySelectorAll<HTMLElement>('.calendar-cell')];
  const at = cells.indexOf(event.target);
  if (at < 0) return;
  const target = cellFrom(cells, at, event.key);
  if (!target) return;
  event.preventDefault();
  target.focus();
}

function cellFrom(cells: readonly HTMLElement[], at: number, key: string): HTMLElement | undefined {
  if (key === 'ArrowRight') return cells[at + 1];
  if (key === 'ArrowLeft') return cells[at - 1];
  if (key === 'Home') return cells[0];
  if (key === 'End') return cells.at(-1);
  if (key !== 'ArrowDown' && key !== 'ArrowUp') return undefined;
  const rowOf = (cell: HTMLElement | undefined) => cell?.closest('tr');
  const current = rowOf(cells[at]);
  const row = key === 'ArrowDown' ? current?.nextElementSibling : current?.previousElementSibling;
  const left = cells[at]?.getBoundingClientRect().left ?? 0;
  const distance = (cell: HTMLElement) => Math.abs(cell.getBoundingClientRect().left - left);
  return cells
    .filter((cell) => rowOf(cell) === row)
    .toSorted((one, other) => distance(one) - distance(other))[0];
}

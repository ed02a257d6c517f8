import { useSignal } from '@preact/signals';
import { timezone } from '../api/client.ts';
import { formatInterval } from '../formatting/format.ts';
import { html, type View } from '../html.ts';
import { navigate } from '../router/location.ts';
import {
  type IntervalLook,
  intervalLooks,
  type Shape,
  shapePath,
  StatusSign,
  type Tone,
} from './statuses.ts';

/** An interval of a ledger. */
export interface IntervalCell {
  readonly start: string;
  readonly end: string;
  readonly status: IntervalLook;
}

const cellSize = 12;
const gap = 4;

/**
 * Intervals in one line, oldest first: a shape and colour for each status. Drawn as one path per status, so that thousands
 * of lines stay quick. A click opens the interval at `pathOf`; screen readers hear the counts of each status.
 */
export function IntervalCells({
  cells,
  pathOf,
  slots = 48,
}: {
  readonly cells: readonly IntervalCell[];
  /** The number of cells that fill the width: the newest of every line is at its right end. */
  readonly slots?: number;
  readonly pathOf?: (cell: IntervalCell) => string;
}): View {
  const hovered = useSignal<IntervalCell | undefined>(undefined);
  if (cells.length === 0) return html`<span class="muted">No interval has ended yet</span>`;
  const count = Math.max(slots, cells.length);
  const empty = count - cells.length;
  const width = count * (cellSize + gap) - gap;
  const cellAt = (event: MouseEvent): IntervalCell | undefined => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    return cells[Math.floor(((event.clientX - box.left) / box.width) * count) - empty];
  };
  const title = hovered.value && titleOf(hovered.value);
  return html`<svg
    class="interval-cells"
    data-opens=${pathOf ? '' : undefined}
    role="img"
    aria-label=${summaryOf(cells)}
    viewBox="0 0 ${width} ${cellSize}"
    preserveAspectRatio="none"
    onMouseMove=${(event: MouseEvent) => {
      hovered.value = cellAt(event);
    }}
    onClick=${(event: MouseEvent) => {
      const cell = cellAt(event);
      if (cell && pathOf) navigate(pathOf(cell));
    }}
  >
    <title>${title ?? summaryOf(cells)}</title>
    ${empty > 0 && html`<path class="interval-slots" d=${slotsOf(empty)} />`}
    ${pathsOf(cells, empty).map(
      ([look, d]) => html`<path key=${look} class="tone-${look.split(' ')[0]}" fill-rule="evenodd" d=${d} />`,
    )}
  </svg>`;
}

const titleOf = ({ start, end, status }: IntervalCell): string =>
  `${formatInterval(start, end, timezone.value)}: ${intervalLooks[status].label.toLowerCase()}`;

/** `46 exported, 1 failed, 1 running`. */
function summaryOf(cells: readonly IntervalCell[]): string {
  const counts = Map.groupBy(cells, ({ status }) => intervalLooks[status].label.toLowerCase());
  const parts = [...counts].map(([label, { length }]) => `${length} ${label}`);
  return `Last ${cells.length} intervals: ${parts.join(', ')}`;
}

/** One outline for each look that occurs. */
function pathsOf(cells: readonly IntervalCell[], empty: number): (readonly [look: string, d: string])[] {
  const paths = new Map<string, string[]>();
  for (const [index, { status }] of cells.entries()) {
    const { tone, shape } = intervalLooks[status];
    const look: `${Tone} ${Shape}` = `${tone} ${shape}`;
    const known = paths.get(look) ?? [];
    known.push(shiftedPath(shape, (index + empty) * (cellSize + gap)));
    paths.set(look, known);
  }
  return [...paths].map(([look, parts]) => [look, parts.join('')]);
}

/** Dots where older intervals will be: a short history reads as short, not as missing. */
const slotsOf = (empty: number): string =>
  Array.from({ length: empty }, (_, index) => shiftedPath('dot', index * (cellSize + gap))).join('');

/** A shape moved to the right: its outlines begin with absolute moves and continue with relative lines. */
const shiftedPath = (shape: Shape, x: number): string =>
  shapePath(shape).replaceAll(/M([\d.]+) /g, (_, from: string) => `M${x + Number(from)} `);

/** What the shapes and colours of intervals mean. */
export function IntervalLegend({ statuses }: { readonly statuses: readonly IntervalLook[] }): View {
  return html`<ul class="legend">
    ${statuses.map(
      (status) =>
        html`<li key=${status}>
          <${StatusSign} look=${intervalLooks[status]} />${intervalLooks[status].label}
        </li>`,
    )}
  </ul>`;
}

import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { CoverageKind, CoverageResponse, CoverageSegment } from '../../../http/console/pages/schema.ts';
import { may } from '../../api/client.ts';
import { IntervalLegend } from '../../components/interval_cells.ts';
import { CellShape, type IntervalLook, intervalLooks } from '../../components/statuses.ts';
import { formatDuration, formatInterval, formatMoment, formatQuantity } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';

/** A range of time, ISO 8601. */
export interface TimeRange {
  readonly start: string;
  readonly end: string;
}

/** How long that many intervals take at the pace of the newest runs; null while none has ended. */
export const durationOf = (
  intervals: number,
  { run_seconds, concurrent_runs }: Pick<CoverageResponse, 'run_seconds' | 'concurrent_runs'>,
): string | null =>
  run_seconds === null
    ? null
    : formatDuration(Math.ceil(Math.ceil(intervals / concurrent_runs) * run_seconds));

/** A range of the coverage. `intervals` is null where they are not counted: before the first known interval. */
type CoveragePart = Omit<CoverageSegment, 'intervals'> & { readonly intervals: number | null };

const looks: Readonly<Record<CoverageKind, IntervalLook>> = {
  exported: 'exported',
  held: 'held',
  failed: 'failed',
  owed: 'due',
  missing: 'missing',
  paused: 'paused',
  excluded: 'excluded',
  expired: 'expired',
};

/** The coverage from the first row of the source, if that is older than what the export knows. */
export function coverageFrom(
  {
    segments,
    is_complete,
    newest_interval,
  }: Pick<CoverageResponse, 'segments' | 'is_complete' | 'newest_interval'>,
  firstRow: string | null,
  startAt: string | null,
): readonly CoveragePart[] {
  const known = segments[0]?.start ?? newest_interval.end;
  if (firstRow === null || !is_complete || Date.parse(firstRow) >= Date.parse(known)) return segments;
  const wanted = [firstRow, startAt, known].map((time) => Date.parse(time ?? firstRow));
  const from = new Date(Math.min(Math.max(wanted[0] ?? 0, wanted[1] ?? 0), wanted[2] ?? 0)).toISOString();
  const parts: CoveragePart[] = [
    { start: firstRow, end: from, kind: 'excluded', intervals: null },
    { start: from, end: known, kind: 'missing', intervals: null },
  ];
  return [...parts.filter(({ start, end }) => Date.parse(start) < Date.parse(end)), ...segments];
}

const rangeOf = (parts: readonly CoveragePart[], from: number, to: number): TimeRange | undefined => {
  const [first, last] = [parts[Math.min(from, to)], parts[Math.max(from, to)]];
  return first && last && { start: first.start, end: last.end };
};

/** How far a pointer moves, in pixels, before it selects a range instead of a part. */
const dragPixels = 4;

/** A selection by pointer, in pixels from the left of the bar, among the parts that it began with. */
interface Drag {
  readonly from: number;
  readonly to: number;
  readonly parts: readonly CoveragePart[];
}

/**
 * What is exported of the time from the first row of the source to now, as a bar. Dragging over it, or a click on a part,
 * calls `onSelect` with the range. By keyboard: the arrows move between parts, with Shift they select several, Enter takes them.
 * What is selected is kept as time, since each reading may have other parts.
 */
export function CoverageBar({
  parts: read,
  timezone,
  detail,
  onSelect,
}: {
  readonly parts: readonly CoveragePart[];
  readonly timezone: string;
  /** Why the first row of the source is not known. */
  readonly detail: string | null;
  readonly onSelect: (range: TimeRange) => void;
}): View {
  const bar = useRef<HTMLDivElement>(null);
  const drag = useSignal<Drag | undefined>(undefined);
  const parts = drag.value?.parts ?? read;
  const anchor = useSignal<string | undefined>(undefined);
  const focused = useSignal(parts.at(-1)?.start);
  const current = indexOfTime(parts, focused.value);
  const anchored = anchor.value === undefined ? undefined : indexOfTime(parts, anchor.value);
  const selects = may('batch_export:write');
  const kinds = [...new Set(parts.map(({ kind }) => looks[kind]))];
  const select = (range: TimeRange | undefined) => range && selects && onSelect(range);

  const offsetOf = ({ clientX }: PointerEvent) => clientX - (bar.current?.getBoundingClientRect().left ?? 0);
  const onPointerDown = (event: PointerEvent) => {
    if (event.button === 0) drag.value = { from: offsetOf(event), to: offsetOf(event), parts };
  };
  const onPointerMove = (event: PointerEvent) => {
    if (!drag.value) return;
    drag.value = { ...drag.value, to: offsetOf(event) };
    if (isDragged(drag.value)) bar.current?.setPointerCapture(event.pointerId);
  };
  const endDrag = () => (drag.value = undefined);
  const onPointerUp = () => {
    const ended = drag.value;
    endDrag();
    if (!ended || !isDragged(ended) || !bar.current) return;
    const [left, right] = [Math.min(ended.from, ended.to), Math.max(ended.from, ended.to)];
    select({ start: timeAt(bar.current, parts, left), end: timeAt(bar.current, parts, right) });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: parts.length - 1 }[event.key];
    const target = to === undefined ? undefined : parts[to];
    if (to === undefined || !target) return;
    event.preventDefault();
    anchor.value = event.shiftKey ? (anchor.value ?? parts[current]?.start) : undefined;
    focused.value = target.start;
    (bar.current?.children[to] as HTMLElement | undefined)?.focus();
  };
  const isSelected = (index: number) =>
    anchored !== undefined && index >= Math.min(anchored, current) && index <= Math.max(anchored, current);

  return html`<div class="card coverage">
    <div
      class="coverage-bar"
      role="group"
      aria-label="Exported time, ${timezone}"
      ref=${bar}
      onPointerDown=${selects && onPointerDown}
      onPointerMove=${selects && onPointerMove}
      onPointerUp=${selects && onPointerUp}
      onPointerCancel=${endDrag}
      onPointerLeave=${endDrag}
      onKeyDown=${onKeyDown}
    >
      ${parts.map(
        (part, index) =>
          html`<button
            key=${part.start}
            type="button"
            class="coverage-part tone-${intervalLooks[looks[part.kind]].tone}"
            style=${{
              flexGrow: (Date.parse(part.end) - Date.parse(part.start)) / 60_000,
              minWidth: `min(3px, ${100 / parts.length}%)`,
            }}
            title=${titleOf(part, timezone)}
            aria-label=${titleOf(part, timezone)}
            aria-pressed=${isSelected(index) ? 'true' : undefined}
            tabindex=${index === current ? 0 : -1}
            onFocus=${() => (focused.value = part.start)}
            onClick=${() => select(rangeOf(parts, isSelected(index) ? (anchored ?? index) : index, index))}
          >
            <${CellShape} status=${looks[part.kind]} />
          </button>`,
      )}
      ${
        drag.value &&
        isDragged(drag.value) &&
        html`<span
          class="coverage-selection"
          style=${{
            left: `${Math.min(drag.value.from, drag.value.to)}px`,
            width: `${Math.abs(drag.value.to - drag.value.from)}px`,
          }}
        />`
      }
    </div>
    <div class="coverage-ends muted figures">
      <span>${formatMoment(parts[0]?.start, timezone, { seconds: false })}</span>
      <span>${formatMoment(parts.at(-1)?.end, timezone, { seconds: false })} ${timezone}</span>
    </div>
    <${IntervalLegend} statuses=${kinds} />
    ${selects && html`<p class="muted">Drag over the bar to backfill a range, or choose a part.</p>`}
    ${detail !== null && html`<p class="muted">The first row of the source is not known. ${detail}</p>`}
  </div>`;
}

/** The part that a time is in; the first one, of earlier times. */
const indexOfTime = (parts: readonly CoveragePart[], time = ''): number =>
  Math.max(
    0,
    parts.findLastIndex(({ start }) => Date.parse(start) <= Date.parse(time)),
  );

const isDragged = ({ from, to }: Drag): boolean => Math.abs(to - from) > dragPixels;

/** `2026-11-23 14:00 – 15:00: not exported, 3 intervals`. */
function titleOf({ start, end, kind, intervals }: CoveragePart, timezone: string): string {
  const count = intervals === null ? '' : `, ${formatQuantity(intervals, 'interval')}`;
  return `${formatInterval(start, end, timezone)}: ${intervalLooks[looks[kind]].label.toLowerCase()}${count}`;
}

/** The time at a distance from the left of the bar, whose parts are wider than their time where that is short. */
function timeAt(bar: HTMLElement, parts: readonly CoveragePart[], x: number): string {
  const { left } = bar.getBoundingClientRect();
  let time = Date.parse(parts[0]?.start ?? '');
  for (const [index, { start, end }] of parts.entries()) {
    const box = bar.children[index]?.getBoundingClientRect();
    if (!box || box.left - left > x) break;
    const share = Math.min(1, (x - (box.left - left)) / Math.max(1, box.width));
    time = Date.parse(start) + share * (Date.parse(end) - Date.parse(start));
  }
  return new Date(time).toISOString();
}

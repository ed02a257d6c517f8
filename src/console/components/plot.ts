import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { timezone } from '../api/client.ts';
import { html, type View } from '../html.ts';
import {
  formatBytes,
  formatDuration,
  formatMoment,
  formatNumber,
  formatShortCount,
} from '../formatting/format.ts';
import { theme } from '../theme.ts';

type Unit = 'count' | 'number' | 'bytes' | 'seconds';

/** One line, or one set of bars or points, of a plot. */
interface PlotSeries {
  readonly label: string;
  readonly values: readonly (number | null)[];
  readonly kind?: 'line' | 'bars' | 'points';
}

/** The dashes of lines in one plot, which differ in them and in their colours (`--series-1` and so on in tokens.css). */
const dashes: readonly (readonly number[])[] = [
  ...[[], [8, 4], [2, 3], [12, 4, 2, 4], [4, 4], [1, 4], [16, 4], [6, 2, 2, 2], [10, 3, 3, 3], [3, 6]],
];
const dashOf = (index: number): readonly number[] => dashes[index % dashes.length] ?? [];

/** The custom property with the colour of a series. There are ten. */
export const seriesColor = (index: number): string => `--series-${(index % dashes.length) + 1}`;

interface PlotProps {
  /** What the plot shows, for screen readers and as its caption. */
  readonly label: string;
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly PlotSeries[];
  readonly unit: Unit;
  readonly height?: number;
  /** Draws each series on top of those before it. */
  readonly isStacked?: boolean;
  /** A click selects the point with this index. */
  readonly onSelect?: (index: number) => void;
}

const formats: Record<Unit, (value: number) => string> = {
  count: formatShortCount,
  number: formatNumber,
  bytes: formatBytes,
  seconds: formatDuration,
};

/**
 * Loads uPlot, which formats numbers in the browser's language and fails to load if that is no language tag: Chromium has
 * `en-US@posix` where the system has no language.
 */
async function loadPlots(): Promise<typeof uPlot> {
  try {
    Intl.getCanonicalLocales(navigator.language);
  } catch {
    Object.defineProperty(navigator, 'language', { value: 'en' });
  }
  return (await import('uplot')).default;
}

/** Values over time, drawn by uPlot, which is loaded with the first plot. It follows the width of its parent. */
export function Plot(props: PlotProps): View {
  const element = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const shape = [props.isStacked, ...props.series.map(({ label, kind }) => `${label} ${kind ?? ''}`)].join();
  const currentTheme = theme.value;

  useEffect(() => {
    const parent = element.current;
    if (!parent) return undefined;
    let isRemoved = false;
    const tooltip = createTooltip(latest);
    const observer = new ResizeObserver(() => {
      drawn.current?.setSize({ width: parent.clientWidth, height: heightOf(latest.current) });
    });
    void loadPlots().then((UPlot) => {
      if (isRemoved) return;
      drawn.current = new UPlot(
        optionsOf(latest, parent, UPlot, tooltip.show),
        dataOf(latest.current),
        parent,
      );
      parent.append(tooltip.element);
      observer.observe(parent);
    });
    return () => {
      isRemoved = true;
      observer.disconnect();
      drawn.current?.destroy();
      drawn.current = undefined;
      tooltip.element.remove();
    };
  }, [shape, props.unit, currentTheme]);

  useEffect(() => {
    drawn.current?.setData(dataOf(props));
  }, [props.times, props.series]);

  return html`<figure class="plot">
    <figcaption>
      ${props.series.length > 1 ? html`<${Lines} series=${props.series} />` : props.label}
    </figcaption>
    <div
      class="plot-area"
      role="img"
      aria-label=${summaryOf(props)}
      ref=${element}
      style=${{ minHeight: `${heightOf(props)}px` }}
    />
  </figure>`;
}

/** The names of several lines beside how each is drawn. */
const Lines = ({ series }: Pick<PlotProps, 'series'>): View =>
  html`<ul class="legend">
    ${series.map(({ label, kind }, index) => {
      return html`<li key=${label}>
        <${SeriesSign} index=${index} isBar=${kind === 'bars'} />
        <span class="legend-name" title=${label}>${label}</span>
      </li>`;
    })}
  </ul>`;

/** How a series is drawn: a piece of its line, or a square of its bars. */
export const SeriesSign = ({ index, isBar }: { readonly index: number; readonly isBar: boolean }): View =>
  html`<svg
    class="plot-line"
    viewBox=${isBar ? '0 0 10 10' : '0 0 28 4'}
    style=${{ color: `var(${seriesColor(index)})`, width: isBar ? '0.625rem' : '1.75rem' }}
    aria-hidden="true"
  >
    ${isBar ? html`<rect width="10" height="10" rx="2" />` : html`<path d="M0 2h28" stroke-dasharray=${dashOf(index).join(' ')} />`}
  </svg>`;

const heightOf = ({ height = 180 }: PlotProps): number => height;

/** The values that are drawn. Those of a stack are sums: the highest comes first, so that the lower ones are drawn over it. */
function dataOf({ times, series, isStacked = false }: PlotProps): uPlot.AlignedData {
  const values = series.map((one) => [...one.values]);
  if (!isStacked) return [[...times], ...values];
  const sums = times.map(() => 0);
  const stacked = values.map((one) =>
    one.map((value, index) => (sums[index] = (sums[index] ?? 0) + (value ?? 0))),
  );
  return [[...times], ...stacked.toReversed()];
}

/** The values at the pointer, beside it: the time, and a line for each series. */
function createTooltip(props: { readonly current: PlotProps }): {
  readonly element: HTMLElement;
  readonly show: (plot: uPlot) => void;
} {
  const element = document.createElement('div');
  element.className = 'plot-tooltip';
  element.hidden = true;
  // The label of the plot and the table have the same.
  element.ariaHidden = 'true';
  const show = ({ cursor, bbox, over }: uPlot): void => {
    const { times, series, unit, isStacked = false } = props.current;
    const { idx, left = -1 } = cursor;
    const time = idx === null || idx === undefined || left < 0 ? undefined : times[idx];
    element.hidden = time === undefined;
    if (time === undefined || typeof idx !== 'number') return;
    const lines = series.flatMap(({ label, values, kind }, index) => {
      const value = values[idx] ?? null;
      return value === null
        ? []
        : [
            html`<li key=${label}>
              <${SeriesSign} index=${index} isBar=${kind === 'bars'} />
              <span>${label}</span> <span class="figures">${formats[unit](value)}</span>
            </li>`,
          ];
    });
    const shown = isStacked ? lines.toReversed() : lines;
    render(
      html`<p>${timeAt(time, times)}</p>
        <ul>
          ${shown}
        </ul>`,
      element,
    );
    const isRight = left > over.clientWidth / 2;
    const at = over.offsetLeft + left;
    element.style.left = isRight ? 'auto' : `${at + 12}px`;
    element.style.right = isRight ? `${(element.parentElement?.clientWidth ?? 0) - at + 12}px` : 'auto';
    element.style.top = `${bbox.top / window.devicePixelRatio}px`;
  };
  return { element, show };
}

/** A time in words: a date where all times are midnights. */
function timeAt(time: number, times: readonly number[]): string {
  const text = (at: number): string => formatMoment(at * 1_000, timezone.value, { seconds: false });
  return times.every((at) => text(at).endsWith(' 00:00')) ? text(time).slice(0, 10) : text(time);
}

/** `Landing time: 12 s to 3 min, last 14 s`. */
function summaryOf({ label, series, unit }: PlotProps): string {
  const format = formats[unit];
  const parts = series.map(({ label: name, values }) => {
    const known = values.filter((value) => value !== null);
    const last = known.at(-1);
    if (last === undefined) return `${name}: no values`;
    return `${name}: ${format(Math.min(...known))} to ${format(Math.max(...known))}, last ${format(last)}`;
  });
  return `${label}. ${parts.join('; ')}`;
}

function optionsOf(
  props: { readonly current: PlotProps },
  parent: HTMLElement,
  library: typeof uPlot,
  onCursor: (plot: uPlot) => void,
): uPlot.Options {
  const { series, unit, isStacked = false } = props.current;
  const drawn = series.map((one, index) => ({ ...one, index }));
  const colors = resolvedColors(parent);
  const axis = { stroke: colors('--text-muted'), font: `12px ${colors.font}`, ticks: { show: false } };
  const bars = library.paths.bars?.({ size: [0.8, 40] });
  const grid = { stroke: colors('--border'), width: 1 };
  const zone = timezone.value;
  return {
    width: parent.clientWidth,
    height: heightOf(props.current),
    // The last time of the axis is wider than what is right of its line.
    padding: [null, 28, null, null],
    cursor: {
      y: false,
      points: { size: 6 },
      bind: {
        click: (plot) => () => {
          const index = plot.cursor.idx;
          if (index !== null && index !== undefined) props.current.onSelect?.(index);
          return null;
        },
      },
    },
    legend: { show: false },
    hooks: { setCursor: [onCursor] },
    tzDate: (time) => library.tzDate(new Date(time * 1_000), zone),
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 32,
        space: 90,
        values: (_plot, splits) => formatTimes(splits, zone),
      },
      {
        ...axis,
        grid,
        size: (_plot, labels) => widthOf(labels),
        values: (_plot, splits) => splits.map(formats[unit]),
        ...(unit === 'seconds' ? { incrs: durationSteps } : {}),
      },
    ],
    scales: {
      x: { range: withMargin(props) },
      y: { range: (_plot, low, high) => [Math.min(0, low * 1.1), Math.max(high * 1.1, 1)] },
    },
    series: [
      {},
      ...(isStacked ? drawn.toReversed() : drawn).map(({ label, values, kind = 'line', index }) => {
        const color = colors(seriesColor(index));
        // A value between gaps has no line.
        const hasGaps = kind === 'line' && values.includes(null);
        return {
          label,
          stroke: color,
          dash: kind === 'line' ? [...dashOf(index)] : [],
          width: kind === 'line' ? 1.5 : 0,
          ...(kind === 'bars' && bars ? { fill: color, paths: bars } : {}),
          points: { show: kind === 'points' || hasGaps, size: 5, fill: color },
        } satisfies uPlot.Series;
      }),
    ],
  };
}

/** The width of the labels of an axis, in digits of 12 pixels. Before uPlot knows its scale, it passes null. */
const widthOf = (labels: readonly string[] | null): number =>
  16 + 7.5 * Math.max(0, ...(labels ?? []).map(({ length }) => length));

/** Half an interval before the first point and after the last one, so that bars and dots are whole. */
const withMargin =
  (props: { readonly current: PlotProps }): uPlot.Range.Function =>
  (_plot, first, last) => {
    const { length } = props.current.times;
    const margin = length > 1 ? (last - first) / (length - 1) / 2 : hourSeconds / 2;
    return [first - margin, last + margin];
  };

const hourSeconds = 3_600;
const daySeconds = 86_400;

/** The steps between the lines of an axis of durations: those that people count in. */
const durationSteps = [
  0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400, 172_800,
  604_800, 2_592_000,
];

/** The times at an axis: dates where it covers days, else times of day. */
function formatTimes(times: readonly number[], zone: string): string[] {
  const [first = 0, second = first] = times;
  const span = (times.at(-1) ?? first) - first;
  // A day has 23 hours when clocks are set forward.
  const isDaily = second - first > daySeconds / 2 || span > 2 * daySeconds;
  return times.map((time) => {
    const text = formatMoment(time * 1_000, zone, { seconds: span < 600 });
    return isDaily ? text.slice(5, 10) : text.slice(11);
  });
}

/** Canvas knows no custom properties: colours are read from an element that has them. */
function resolvedColors(parent: HTMLElement): ((property: string) => string) & { readonly font: string } {
  const probe = document.createElement('span');
  parent.append(probe);
  const font = getComputedStyle(probe).fontFamily;
  probe.remove();
  const read = (property: string): string => {
    const element = document.createElement('span');
    element.style.color = `var(${property})`;
    parent.append(element);
    const { color } = getComputedStyle(element);
    element.remove();
    return color;
  };
  return Object.assign(read, { font });
}

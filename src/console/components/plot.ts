import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { timezone } from '../api/client.ts';
import { html, type View } from '../html.ts';
import { formatBytes, formatDuration, formatMoment, formatShortCount } from '../formatting/format.ts';
import { theme } from '../theme.ts';
import type { Tone } from './statuses.ts';

type Unit = 'count' | 'bytes' | 'seconds';

/** One line, or one set of bars or points, of a plot. */
interface PlotSeries {
  readonly label: string;
  readonly values: readonly (number | null)[];
  readonly kind?: 'line' | 'bars' | 'points';
}

/** The colours and dashes of lines in one plot, which differ in both. */
const lines: readonly { readonly tone: Tone; readonly dash: readonly number[] }[] = [
  { tone: 'running', dash: [] },
  { tone: 'attention', dash: [8, 4] },
  { tone: 'held', dash: [2, 3] },
  { tone: 'good', dash: [12, 4, 2, 4] },
  { tone: 'danger', dash: [4, 4] },
  { tone: 'neutral', dash: [1, 4] },
];
const lineOf = (index: number): (typeof lines)[number] =>
  lines[index % lines.length] ?? { tone: 'running', dash: [] };

interface PlotProps {
  /** What the plot shows, for screen readers and as its caption. */
  readonly label: string;
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly PlotSeries[];
  readonly unit: Unit;
  readonly height?: number;
  /** A click selects the point with this index. */
  readonly onSelect?: (index: number) => void;
}

const formats: Record<Unit, (value: number) => string> = {
  count: formatShortCount,
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
  const shape = props.series.map(({ label, kind }) => `${label} ${kind ?? ''}`).join();
  const currentTheme = theme.value;

  useEffect(() => {
    const parent = element.current;
    if (!parent) return undefined;
    let isRemoved = false;
    const observer = new ResizeObserver(() => {
      drawn.current?.setSize({ width: parent.clientWidth, height: heightOf(latest.current) });
    });
    void loadPlots().then((UPlot) => {
      if (isRemoved) return;
      drawn.current = new UPlot(optionsOf(latest, parent, UPlot), dataOf(latest.current), parent);
      observer.observe(parent);
    });
    return () => {
      isRemoved = true;
      observer.disconnect();
      drawn.current?.destroy();
      drawn.current = undefined;
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
    ${series.map(({ label }, index) => {
      const { tone, dash } = lineOf(index);
      return html`<li key=${label}>
        <svg class="plot-line tone-${tone}" viewBox="0 0 28 4" aria-hidden="true">
          <path d="M0 2h28" stroke-dasharray=${dash.join(' ')} />
        </svg>
        ${label}
      </li>`;
    })}
  </ul>`;

const heightOf = ({ height = 180 }: PlotProps): number => height;

const dataOf = ({ times, series }: PlotProps): uPlot.AlignedData => [
  [...times],
  ...series.map(({ values }) => [...values]),
];

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
): uPlot.Options {
  const { series, unit } = props.current;
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
    legend: { live: true },
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
      y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 1)] },
    },
    series: [
      { value: '{YYYY}-{MM}-{DD} {HH}:{mm}' },
      ...series.map(({ label, kind = 'line' }, index) => {
        const { tone, dash } = lineOf(index);
        const color = colors(`--tone-${tone}`);
        return {
          label,
          stroke: color,
          dash: [...dash],
          width: kind === 'points' ? 0 : 1.5,
          ...(kind === 'bars' && bars ? { fill: color, paths: bars } : {}),
          points: { show: kind === 'points', size: 5, fill: color },
          value: (_plot: uPlot, value: number | null) => (value === null ? '–' : formats[unit](value)),
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

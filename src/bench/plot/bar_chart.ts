import { chartWidth, colorOf, legend, legendLine, line, point, svgDocument, text, ticksUpTo } from './svg.ts';

/** A horizontal bar. */
export interface Bar {
  readonly value: number;
  /** The minimum and maximum of the repeats. */
  readonly range?: readonly [number, number];
  /** The value as text. */
  readonly label: string;
  /** Index of its series. */
  readonly series: number;
}

export interface BarChart {
  readonly title: string;
  readonly axis: string;
  /** Names of the series, for a legend; none for a single one. */
  readonly series: readonly string[];
  readonly groups: readonly { readonly label: string; readonly bars: readonly Bar[] }[];
  /** A vertical line across all bars. */
  readonly limit?: { readonly value: number; readonly label: string };
}

const plot = { left: 210, right: chartWidth - 80 };
const legendTop = 50;
const barHeight = 16;
const groupGap = 10;

/** Draws groups of horizontal bars. */
export function barChart({ title, axis, series, groups, limit }: BarChart): string {
  const values = groups.flatMap(({ bars }) => bars.map(({ value, range }) => range?.[1] ?? value));
  const plotTop = legendTop + series.length * legendLine + 12;
  const ticks = ticksUpTo(Math.max(...values, limit?.value ?? 0));
  const scale = (value: number) => plot.left + (value / (ticks.at(-1) ?? 1)) * (plot.right - plot.left);
  const heights = groups.map(({ bars }) => bars.length * barHeight + groupGap);
  const bottom = plotTop + heights.reduce((sum, height) => sum + height, 0);
  const tops = heights.map((_, index) =>
    heights.slice(0, index).reduce((sum, height) => sum + height, plotTop + groupGap / 2),
  );
  return svgDocument(bottom + 52, title, [
    ...legend(series, plot.left, legendTop),
    ...ticks.map((tick) => line(scale(tick), plotTop, scale(tick), bottom, 'grid')),
    ...ticks.map((tick) => text(scale(tick), bottom + 18, tick.toLocaleString('en'), 'middle')),
    text((plot.left + plot.right) / 2, bottom + 40, axis, 'middle'),
    ...groups.flatMap(({ label, bars }, index) => {
      const top = tops[index] ?? 0;
      return [
        text(plot.left - 10, top + (bars.length * barHeight) / 2 + 4, label, 'end'),
        ...bars.flatMap((bar, row) => drawBar(bar, top + row * barHeight, scale)),
      ];
    }),
    ...(limit === undefined
      ? []
      : [
          line(scale(limit.value), plotTop, scale(limit.value), bottom, 'mark dashed'),
          text(scale(limit.value), plotTop - 6, limit.label, 'middle'),
        ]),
  ]);
}

function drawBar(
  { value, range, label, series }: Bar,
  y: number,
  scale: (value: number) => number,
): string[] {
  const middle = y + barHeight / 2;
  const width = point(scale(value) - scale(0));
  const bar = `<rect x="${point(scale(0))}" y="${point(y + 1)}" width="${width}" height="${String(barHeight - 2)}" fill="${colorOf(series)}"/>`;
  const ends = range ?? [value, value];
  const whisker = range === undefined ? [] : [line(scale(ends[0]), middle, scale(ends[1]), middle, 'mark')];
  return [bar, ...whisker, text(scale(ends[1]) + 6, middle + 4, label)];
}

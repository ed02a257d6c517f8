import { chartWidth, colorOf, legend, line, point, svgDocument, text, ticksUpTo } from './svg.ts';

/** A line through points from left to right. */
export interface Series {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface LineChart {
  readonly title: string;
  readonly xAxis: string;
  readonly yAxis: string;
  readonly series: readonly Series[];
  /** Name of the line y = x, which is drawn dashed. */
  readonly diagonal: string;
}

const plot = { left: 70, right: chartWidth - 110, top: 50, bottom: 370 };

/** Draws lines over common axes that start at 0. */
export function lineChart({ title, xAxis, yAxis, series, diagonal }: LineChart): string {
  const points = series.flatMap((one) => one.points);
  const xs = [...new Set(points.map(({ x }) => x))].toSorted((left, right) => left - right);
  const maxX = xs.at(-1) ?? 1;
  const ticks = ticksUpTo(Math.max(maxX, ...points.map(({ y }) => y)));
  const atX = (x: number) => plot.left + (x / maxX) * (plot.right - plot.left);
  const atY = (y: number) => plot.bottom - (y / (ticks.at(-1) ?? 1)) * (plot.bottom - plot.top);
  const middle = (plot.top + plot.bottom) / 2;
  return svgDocument(plot.bottom + 56, title, [
    ...legend(
      series.map(({ name }) => name),
      plot.left + 16,
      plot.top + 24,
    ),
    ...ticks.map((tick) => line(plot.left, atY(tick), plot.right, atY(tick), 'grid')),
    ...ticks.map((tick) => text(plot.left - 8, atY(tick) + 4, tick.toLocaleString('en'), 'end')),
    ...xs.map((x) => text(atX(x), plot.bottom + 20, x.toLocaleString('en'), 'middle')),
    text((plot.left + plot.right) / 2, plot.bottom + 44, xAxis, 'middle'),
    `<g transform="translate(20 ${point(middle)}) rotate(-90)">${text(0, 0, yAxis, 'middle')}</g>`,
    line(atX(0), atY(0), atX(maxX), atY(maxX), 'mark dashed'),
    text(atX(maxX) + 10, atY(maxX) + 4, diagonal),
    ...series.flatMap(({ points: ofSeries }, index) => [
      `<polyline fill="none" stroke-width="2" stroke="${colorOf(index)}" points="${ofSeries
        .map(({ x, y }) => `${point(atX(x))},${point(atY(y))}`)
        .join(' ')}"/>`,
      ...ofSeries.map(
        ({ x, y }) =>
          `<circle r="4" fill="${colorOf(index)}" cx="${point(atX(x))}" cy="${point(atY(y))}"><title>${y.toFixed(2)}</title></circle>`,
      ),
    ]),
  ]);
}

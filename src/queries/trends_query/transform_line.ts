import type { Line } from './lines.ts';
import type { DisplayForm } from './schema.ts';

/** The running sum. */
function summedUp(data: readonly number[]): readonly number[] {
  let total = 0;
  return data.map((value) => (total += value));
}

/** The moving average over up to `points` points, rounded down. */
const smoothed = (data: readonly number[], points: number): readonly number[] =>
  data.map((_, index) => {
    const window = data.slice(Math.max(0, index - points + 1), index + 1);
    return Math.floor(window.reduce((total, value) => total + value, 0) / window.length);
  });

/** Applies the display and the smoothing of a query to a line. */
export function transformLine(line: Line, display: DisplayForm, smoothing: number | null | undefined): Line {
  if (display === 'totalValue') return line;
  const data = display === 'cumulative' ? summedUp(line.data) : line.data;
  return { ...line, data: smoothing && smoothing > 1 ? smoothed(data, smoothing) : data };
}

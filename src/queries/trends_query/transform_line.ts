import type { Line } from './lines.ts';
import type { DisplayForm } from './schema.ts';

/** Each point with all before it. */
function summedUp(data: readonly number[]): readonly number[] {
  let total = 0;
  return data.map((value) => (total += value));
}

/** The mean of up to so many points, down to a whole number. */
const smoothed = (data: readonly number[], points: number): readonly number[] =>
  data.map((_, index) => {
    const window = data.slice(Math.max(0, index - points + 1), index + 1);
    return Math.floor(window.reduce((total, value) => total + value, 0) / window.length);
  });

/** A line as its query's display shows it. */
export function transformLine(line: Line, display: DisplayForm, smoothing: number | null | undefined): Line {
  if (display === 'totalValue') return line;
  const data = display === 'cumulative' ? summedUp(line.data) : line.data;
  return { ...line, data: smoothing && smoothing > 1 ? smoothed(data, smoothing) : data };
}

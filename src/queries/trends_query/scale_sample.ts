import { countOfAll } from '../sampling.ts';
import type { Line } from './lines.ts';
import { isAdditive } from './math.ts';
import type { SeriesPosition } from './series_events.ts';

/** Extrapolates lines over sampled events to all events. */
export function scaleSample(
  lines: readonly Line[],
  { query: { samplingFactor: factor }, series: { math } }: SeriesPosition,
): readonly Line[] {
  if (factor === null || !isAdditive(math)) return lines;
  const scale = (value: number): number => (math === 'sum' ? value / factor : countOfAll(value, factor));
  return lines.map((line) => ({ ...line, data: line.data.map(scale) }));
}

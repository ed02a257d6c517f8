import type { Expression } from '../../dialect/ast.ts';
import { expressionOf } from '../../dialect/build.ts';
import { nullValue } from './breakdown_marks.ts';

/** The edges of a histogram's bins in ascending order, one more than there are bins; none where no event has a number. */
export type Bins = readonly number[];

const rounded = (value: number): number => Math.round(value * 100) / 100;

/** Bins of the same width from the smallest to the largest number. The last one is a little wider, so that it holds the largest. */
export function binsOf(least: number, largest: number, count: number): Bins {
  const width = (largest - least) / count;
  const inner = Array.from({ length: count - 1 }, (_, index) => rounded(least + (index + 1) * width));
  const edges = [Math.floor(least * 100) / 100, ...inner, rounded(largest + 0.01)];
  return [...new Set(edges)].sort((one, other) => one - other);
}

const shown = (low: number, high: number): string => `[${low},${high}]`;

/** The bins as they are shown, `[0,12.5]`. */
const binTexts = (bins: Bins): readonly string[] =>
  bins.slice(1).map((high, index) => shown(bins[index] ?? high, high));

/** The text of the bin that a number lies in, found by halving. */
export function binnedValue(value: Expression, bins: Bins): Expression {
  const number = expressionOf('toFloat({value})', { value });
  const texts = binTexts(bins);
  const missing = expressionOf('{missing}', { missing: { value: nullValue } });
  if (texts.length === 0) return missing;
  const among = (first: number, last: number): Expression => {
    if (first === last) return expressionOf('{text}', { text: { value: texts[first] ?? '' } });
    const middle = Math.floor((first + last) / 2);
    return expressionOf('{number} < {edge} ? {below} : {above}', {
      number,
      edge: { value: bins[middle + 1] ?? 0 },
      below: among(first, middle),
      above: among(middle + 1, last),
    });
  };
  return expressionOf('isNull({number}) ? {missing} : {bin}', {
    number,
    missing,
    bin: among(0, texts.length - 1),
  });
}

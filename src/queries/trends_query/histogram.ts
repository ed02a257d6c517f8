import type { Expression } from '../../dialect/ast.ts';
import { buildExpression } from '../../dialect/ast_builders.ts';
import { nullValue } from './breakdown_placeholders.ts';

/** The edges of a histogram's bins in ascending order, one more than bins; empty if no event has a number. */
export type Bins = readonly number[];

const rounded = (value: number): number => Math.round(value * 100) / 100;

/**
 * Bins of equal width from the smallest to the largest number. The last one is slightly wider, to include the largest.
 */
export function binsOf(least: number, largest: number, count: number): Bins {
  const width = (largest - least) / count;
  const inner = Array.from({ length: count - 1 }, (_, index) => rounded(least + (index + 1) * width));
  const edges = [Math.floor(least * 100) / 100, ...inner, rounded(largest + 0.01)];
  return [...new Set(edges)].sort((one, other) => one - other);
}

const binLabel = (low: number, high: number): string => `[${low},${high}]`;

/** The labels of the bins, such as `[0,12.5]`. */
const binLabels = (bins: Bins): readonly string[] =>
  bins.slice(1).map((high, index) => binLabel(bins[index] ?? high, high));

/** The label of the bin of a number, found by binary search. */
export function binnedValue(value: Expression, bins: Bins): Expression {
  const number = buildExpression('toFloat({value})', { value });
  const strings = binLabels(bins);
  const missing = buildExpression('{missing}', { missing: { value: nullValue } });
  if (strings.length === 0) return missing;
  const findBin = (first: number, last: number): Expression => {
    if (first === last) return buildExpression('{text}', { text: { value: strings[first] ?? '' } });
    const middle = Math.floor((first + last) / 2);
    return buildExpression('{number} < {edge} ? {below} : {above}', {
      number,
      edge: { value: bins[middle + 1] ?? 0 },
      below: findBin(first, middle),
      above: findBin(middle + 1, last),
    });
  };
  return buildExpression('isNull({number}) ? {missing} : {bin}', {
    number,
    missing,
    bin: findBin(0, strings.length - 1),
  });
}

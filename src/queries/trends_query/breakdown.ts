import type { Expression } from '@exportd/dialect/ast';
import { buildExpression } from '@exportd/dialect/ast_builders';
import type { DialectReader } from '../dialect_reader.ts';
import { type Breakdown, breakdownExpression, breakdownsOf, normalizedUrl } from '../breakdowns.ts';
import { buildNamedSelect } from './named_select.ts';
import type { TrendsQuery } from './schema.ts';
import type { SeriesEvents } from './series.ts';

/** What the values of events are: those that a query breaks its series down by. @throws QueryError */
export async function breakdownValues(
  { breakdownFilter }: Pick<TrendsQuery, 'breakdownFilter'>,
  events: SeriesEvents,
  reader: DialectReader,
): Promise<readonly Expression[]> {
  const values: Expression[] = [];
  for (const breakdown of breakdownsOf(breakdownFilter)) {
    const bins = breakdown.bins === null ? null : await binsFor(breakdown, breakdown.bins, events, reader);
    values.push(breakdownValue(breakdown, bins));
  }
  return values;
}

/**
 * The breakdown value of an event as a string, never null or empty.
 * @param bins of a histogram: the value is then the label of the number's bin
 * @throws QueryError
 */
function breakdownValue(breakdown: Breakdown, bins: Bins | null): Expression {
  const value = breakdownExpression(breakdown);
  if (bins !== null) return binnedValue(value, bins);
  const text = buildExpression('toString({value})', { value });
  const read = breakdown.normalize_url
    ? buildExpression("isNull({text}) or {text} = '' ? null : {url}", { text, url: normalizedUrl(text) })
    : text;
  return buildExpression("ifNull(nullIf({read}, ''), {missing})", { read, missing: { value: nullValue } });
}

/** The edges of a histogram's bins in ascending order, one more than bins; empty if no event has a number. */
type Bins = readonly number[];

/** The bins of a histogram over the events of a series. */
async function binsFor(
  breakdown: Breakdown,
  count: number,
  { from, condition }: SeriesEvents,
  reader: DialectReader,
): Promise<Bins> {
  const number = buildExpression('toFloat({value})', { value: breakdownExpression(breakdown) });
  const edges = buildNamedSelect(
    {
      least: buildExpression('min({number})', { number }),
      largest: buildExpression('max({number})', { number }),
    },
    { from, where: condition },
  );
  const { rows } = await reader.read(edges, { attr: breakdown.attr });
  const [least, largest] = rows[0] ?? [];
  return typeof least === 'number' && typeof largest === 'number' ? binsOf(least, largest, count) : [];
}

/**
 * Bins of equal width from the smallest to the largest number. The last one is slightly wider, to include the largest.
 */
function binsOf(least: number, largest: number, count: number): Bins {
  const width = (largest - least) / count;
  const inner = Array.from({ length: count - 1 }, (_, index) => rounded(least + (index + 1) * width));
  const edges = [Math.floor(least * 100) / 100, ...inner, rounded(largest + 0.01)];
  return [...new Set(edges)].sort((one, other) => one - other);
}

const rounded = (value: number): number => Math.round(value * 100) / 100;

/** The label of the bin of a number, found by binary search. */
function binnedValue(value: Expression, bins: Bins): Expression {
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

/** The labels of the bins, such as `[0,12.5]`. */
const binLabels = (bins: Bins): readonly string[] =>
  bins.slice(1).map((high, index) => binLabel(bins[index] ?? high, high));

const binLabel = (low: number, high: number): string => `[${low},${high}]`;

const defaultLimit = 25;

const worldMapLimit = 250;

/** How many values have a separate line. */
export const breakdownLimit = ({ breakdownFilter, trendsFilter }: TrendsQuery): number =>
  breakdownFilter?.breakdown_limit ?? (trendsFilter?.display === 'WorldMap' ? worldMapLimit : defaultLimit);

/** Stands for events without a value. */
export const nullValue = '$$_posthog_breakdown_null_$$';

/** Stands for all values without a separate line. */
export const otherValue = '$$_posthog_breakdown_other_$$';

const placeholderLabels: ReadonlyMap<string, string> = new Map([
  [nullValue, 'None (i.e. no value)'],
  [otherValue, 'Other (i.e. all remaining values)'],
]);

/** The label of breakdown values. */
export const breakdownLabel = (values: readonly string[]): string =>
  values.map((value) => placeholderLabels.get(value) ?? value).join('::');

import type { Expression } from '../../dialect/ast.ts';
import { expressionOf } from '../../dialect/build.ts';
import { brokenDownBy, normalizedUrl } from '../breakdowns/broken_down_by.ts';
import type { Breakdown } from '../breakdowns/schema.ts';
import { nullValue } from './breakdown_marks.ts';
import { binnedValue, type Bins } from './histogram.ts';

/**
 * The text of an event's value, never null or empty.
 * @param bins of a histogram: the value is the text of the one that the number lies in
 * @throws QueryInvalid
 */
export function breakdownValue(breakdown: Breakdown, bins: Bins | null): Expression {
  const value = brokenDownBy(breakdown);
  if (bins !== null) return binnedValue(value, bins);
  const text = expressionOf('toString({value})', { value });
  const read = breakdown.normalize_url
    ? expressionOf("isNull({text}) or {text} = '' ? null : {url}", { text, url: normalizedUrl(text) })
    : text;
  return expressionOf("ifNull(nullIf({read}, ''), {missing})", { read, missing: { value: nullValue } });
}

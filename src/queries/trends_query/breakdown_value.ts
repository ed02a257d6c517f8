import type { Expression } from '../../dialect/ast.ts';
import { buildExpression } from '../../dialect/ast_builders.ts';
import { breakdownExpression, normalizedUrl } from '../breakdowns/breakdown_expression.ts';
import type { Breakdown } from '../breakdowns/schema.ts';
import { nullValue } from './breakdown_placeholders.ts';
import { binnedValue, type Bins } from './histogram.ts';

/**
 * The breakdown value of an event as a string, never null or empty.
 * @param bins of a histogram: the value is then the label of the number's bin
 * @throws QueryError
 */
export function breakdownValue(breakdown: Breakdown, bins: Bins | null): Expression {
  const value = breakdownExpression(breakdown);
  if (bins !== null) return binnedValue(value, bins);
  const text = buildExpression('toString({value})', { value });
  const read = breakdown.normalize_url
    ? buildExpression("isNull({text}) or {text} = '' ? null : {url}", { text, url: normalizedUrl(text) })
    : text;
  return buildExpression("ifNull(nullIf({read}, ''), {missing})", { read, missing: { value: nullValue } });
}

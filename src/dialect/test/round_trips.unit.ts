import { describe, expect, it } from '@jest/globals';
import { parseQuery, parseSelectItem } from '../parser/queries.ts';
import { printExpression, printQuery } from '../print.ts';
import { canonicalExpressions } from './canonical_expressions.ts';
import { canonicalQueries } from './canonical_queries.ts';
import { withoutSpans } from './without_spans.ts';

const pairs = (texts: typeof canonicalQueries): (readonly [string, string])[] =>
  texts.map((text) => (typeof text === 'string' ? [text, text] : text));

describe('expressions', () => {
  it.each(pairs(canonicalExpressions))('%s', (text, canonical) => {
    const tree = parseSelectItem(text);
    expect(printExpression(tree)).toBe(canonical);
    expect(withoutSpans(parseSelectItem(canonical))).toEqual(withoutSpans(tree));
  });
});

describe('queries', () => {
  it.each(pairs(canonicalQueries))('%s', (text, canonical) => {
    const tree = parseQuery(text);
    expect(printQuery(tree)).toBe(canonical);
    expect(withoutSpans(parseQuery(canonical))).toEqual(withoutSpans(tree));
  });
});

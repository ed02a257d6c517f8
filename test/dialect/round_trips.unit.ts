import { describe, expect, it } from '@jest/globals';
import { parseQuery, parseSelectItem } from '../../src/dialect/parser/parse.ts';
import { printExpression, printQuery } from '../../src/dialect/print/print.ts';
import { expressionTexts } from './expression_texts.ts';
import { queryTexts } from './query_texts.ts';
import { withoutPlaces } from './without_places.ts';

const pairs = (texts: typeof queryTexts): (readonly [string, string])[] =>
  texts.map((text) => (typeof text === 'string' ? [text, text] : text));

describe('expressions', () => {
  it.each(pairs(expressionTexts))('%s', (text, canonical) => {
    const tree = parseSelectItem(text);
    expect(printExpression(tree)).toBe(canonical);
    expect(withoutPlaces(parseSelectItem(canonical))).toEqual(withoutPlaces(tree));
  });
});

describe('queries', () => {
  it.each(pairs(queryTexts))('%s', (text, canonical) => {
    const tree = parseQuery(text);
    expect(printQuery(tree)).toBe(canonical);
    expect(withoutPlaces(parseQuery(canonical))).toEqual(withoutPlaces(tree));
  });
});

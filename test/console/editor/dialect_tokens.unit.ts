import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { dialectTokens, markedPieces } from '../../../src/console/editor/marked_text.ts';

const keywords = new Set(['SELECT', 'FROM', 'WHERE', 'IN', 'AS', 'AND']);
const looksOf = (text: string) =>
  dialectTokens(text, keywords)
    .filter(({ look }) => look !== 'space')
    .map(({ start, end, look }) => `${text.slice(start, end)} ${look}`);

describe('the tokens of a query', () => {
  it('tell keywords, functions, names, strings, numbers and comments apart', () => {
    expect(
      looksOf("select count() as n, e.from, `a b` from events -- all\nwhere x in ('it\\'s', 4.5)"),
    ).toEqual([
      'select keyword',
      'count function',
      '( symbol',
      ') symbol',
      'as keyword',
      'n name',
      ', symbol',
      'e name',
      '. symbol',
      'from name',
      ', symbol',
      '`a b` name',
      'from keyword',
      'events name',
      '-- all comment',
      'where keyword',
      'x name',
      'in keyword',
      '( symbol',
      "'it\\'s' string",
      ', symbol',
      '4.5 number',
      ') symbol',
    ]);
  });

  it('read an unclosed string or comment to the end', () => {
    expect(looksOf("select 'abc")).toEqual(['select keyword', "'abc string"]);
    expect(looksOf('select /* abc')).toEqual(['select keyword', '/* abc comment']);
  });

  it('cover any text without gaps, also when it is cut at an error', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(20), fc.nat(20), (text, offset, length) => {
        const tokens = dialectTokens(text, keywords);
        expect(tokens.map(({ start, end }) => text.slice(start, end)).join('')).toBe(text);
        const pieces = markedPieces(text, tokens, { offset: Math.min(offset, text.length), length });
        expect(
          pieces
            .map((piece) => piece.text)
            .join('')
            .slice(0, text.length),
        ).toBe(text);
        expect(pieces.some(({ isWrong }) => isWrong)).toBe(true);
      }),
    );
  });
});

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseQuery, parseSelectItem } from '../../src/dialect/parser/parse.ts';
import { printExpression, printQuery } from '../../src/dialect/print/print.ts';
import { grammar } from './grammar.ts';
import { withoutPlaces } from './without_places.ts';
import { mutated } from './mutations.ts';

/** Seconds that each half of the fuzzing takes; a longer run sets it: EXPORTD_FUZZ_SECONDS=30. */
const seconds = Number(process.env.EXPORTD_FUZZ_SECONDS ?? 3);
const bounded = { numRuns: 1_000_000, interruptAfterTimeLimit: seconds * 1000 };
const { query, expression } = grammar();

describe('fuzzing the parser', () => {
  it('parses every query of the grammar, and again what it prints', () => {
    fc.assert(
      fc.property(query, (text) => {
        const tree = parseQuery(text);
        const printed = printQuery(tree);
        expect(withoutPlaces(parseQuery(printed))).toEqual(withoutPlaces(tree));
      }),
      bounded,
    );
  });

  it('parses every expression of the grammar, and again what it prints', () => {
    fc.assert(
      fc.property(expression, (text) => {
        const tree = parseSelectItem(text);
        const printed = printExpression(tree);
        expect(withoutPlaces(parseSelectItem(printed))).toEqual(withoutPlaces(tree));
        expect(printExpression(parseSelectItem(printed))).toBe(printed);
      }),
      { ...bounded, interruptAfterTimeLimit: seconds * 300 },
    );
  });

  it('answers a damaged query with a place, or parses it and what it prints', () => {
    fc.assert(
      fc.property(mutated(query), (text) => {
        const outcome = parsedOrRefused(text);
        if (typeof outcome === 'string') {
          expect(withoutPlaces(parseQuery(outcome))).toEqual(withoutPlaces(parseQuery(text)));
          return;
        }
        const { line, column, offset, length, excerpt, sentence } = outcome;
        const lines = text.split(/\r\n|\n|\r/);
        expect(line).toBeGreaterThanOrEqual(1);
        expect(line).toBeLessThanOrEqual(lines.length);
        expect(column).toBeLessThanOrEqual(Array.from(lines[line - 1] ?? '').length + 1);
        expect(offset + length).toBeLessThanOrEqual(text.length);
        expect(excerpt).toMatch(/\n\s*\^+$/);
        expect(sentence).toMatch(/[.?]$/);
      }),
      bounded,
    );
  });
});

/** The printed query, or the error if it is one of the dialect; any other is a fault of the parser. */
function parsedOrRefused(text: string): string | Refused {
  try {
    return printQuery(parseQuery(text));
  } catch (error) {
    if (Error.isError(error) && error.name === 'DialectError') return error as unknown as Refused;
    throw error;
  }
}

interface Refused {
  readonly line: number;
  readonly column: number;
  readonly offset: number;
  readonly length: number;
  readonly excerpt: string;
  readonly sentence: string;
}

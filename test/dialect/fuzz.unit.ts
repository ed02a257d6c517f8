import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compileQuery } from '../../src/dialect/compile/compile_query.ts';
import { parseQuery, parseSelectItem } from '../../src/dialect/parser/parse.ts';
import { printExpression, printQuery } from '../../src/dialect/print/print.ts';
import { grammar } from './grammar.ts';
import { effort } from '../setup/effort.ts';
import { project } from './project.ts';
import { withoutPlaces } from './without_places.ts';
import { mutated } from './mutations.ts';

/** Seconds of the whole file: half for queries that have to parse, half for damaged ones. */
const seconds = 8 * effort;
const bounded = (share: number) => ({
  numRuns: 10_000_000,
  interruptAfterTimeLimit: seconds * share * 1000,
});
const longest = (seconds + 60) * 1000;
const { query, expression } = grammar();

describe('fuzzing the parser', () => {
  it(
    'parses every query of the grammar, and again what it prints; compiling it ends well or with a place',
    () => {
      fc.assert(
        fc.property(query, (text) => {
          const tree = parseQuery(text);
          const printed = printQuery(tree);
          expect(withoutPlaces(parseQuery(printed))).toEqual(withoutPlaces(tree));
          expectCompiledOrRefused(text);
        }),
        bounded(0.4),
      );
    },
    longest,
  );

  it(
    'parses every expression of the grammar, and again what it prints',
    () => {
      fc.assert(
        fc.property(expression, (text) => {
          const tree = parseSelectItem(text);
          const printed = printExpression(tree);
          expect(withoutPlaces(parseSelectItem(printed))).toEqual(withoutPlaces(tree));
          expect(printExpression(parseSelectItem(printed))).toBe(printed);
        }),
        bounded(0.1),
      );
    },
    longest,
  );

  it(
    'answers a damaged query with a place, or parses it and what it prints',
    () => {
      fc.assert(
        fc.property(mutated(query), (text) => {
          const printed = orRefused(text, () => printQuery(parseQuery(text)));
          if (printed === undefined) return;
          expect(withoutPlaces(parseQuery(printed))).toEqual(withoutPlaces(parseQuery(text)));
          expectCompiledOrRefused(text);
        }),
        bounded(0.5),
      );
    },
    longest,
  );
});

function expectCompiledOrRefused(text: string): void {
  const sql = orRefused(text, () => compileQuery(text, project).sql);
  if (sql !== undefined) expect(sql).toMatch(/^(with|select|\()/);
}

/** What `make` gives; undefined where it refuses the text and says where. Any other error is a fault of the dialect. */
function orRefused(text: string, make: () => string): string | undefined {
  try {
    return make();
  } catch (error) {
    if (!Error.isError(error) || error.name !== 'DialectError') throw error;
    const { line, column, offset, length, excerpt, sentence } = error as unknown as Refused;
    const lines = text.split(/\r\n|\n|\r/);
    expect(line).toBeGreaterThanOrEqual(1);
    expect(line).toBeLessThanOrEqual(lines.length);
    expect(column).toBeLessThanOrEqual(Array.from(lines[line - 1] ?? '').length + 1);
    expect(offset + length).toBeLessThanOrEqual(text.length);
    expect(excerpt).toMatch(/\n\s*\^+$/);
    expect(sentence.length).toBeGreaterThan(10);
    return undefined;
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

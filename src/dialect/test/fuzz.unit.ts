import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compileQuery } from '../compile/compile_query.ts';
import { parseQuery, parseSelectItem } from '../parser/queries.ts';
import { printExpression, printQuery } from '../print.ts';
import { grammar } from './grammar.ts';
import { effort } from '../../../test/setup/effort.ts';
import { project } from './project.ts';
import { withoutSpans } from './without_spans.ts';
import { mutated } from './mutations.ts';

/** Seconds of the whole file: half for queries that have to parse, half for damaged ones. Most of the search is in `npm run test:long`. */
const seconds = effort > 1 ? 80 : 1;
const bounded = (share: number) => ({
  numRuns: 10_000_000,
  interruptAfterTimeLimit: seconds * share * 1000,
});
const timeoutMs = (seconds + 60) * 1000;
const rules = grammar();
/** The parser rejects more SELECTs in one text. */
const maxSelects = 100;
const isShort = (text: string): boolean => (text.match(/select/gi)?.length ?? 0) <= maxSelects;
const query = rules.query.filter(isShort);
const expression = rules.expression.filter(isShort);

describe('the fuzzed parser', () => {
  it(
    'round-trips every query of the grammar, and compiles it or fails with a position',
    () => {
      fc.assert(
        fc.property(query, (text) => {
          const tree = parseQuery(text);
          const printed = printQuery(tree);
          expect(withoutSpans(parseQuery(printed))).toEqual(withoutSpans(tree));
          expectCompiledOrRejected(text);
        }),
        bounded(0.4),
      );
    },
    timeoutMs,
  );

  it(
    'round-trips every expression of the grammar',
    () => {
      fc.assert(
        fc.property(expression, (text) => {
          const tree = parseSelectItem(text);
          const printed = printExpression(tree);
          expect(withoutSpans(parseSelectItem(printed))).toEqual(withoutSpans(tree));
          expect(printExpression(parseSelectItem(printed))).toBe(printed);
        }),
        bounded(0.1),
      );
    },
    timeoutMs,
  );

  it(
    'rejects a damaged query with a position, or round-trips it',
    () => {
      fc.assert(
        fc.property(mutated(query), (text) => {
          const printed = orRejected(text, () => printQuery(parseQuery(text)));
          if (printed === undefined) return;
          expect(withoutSpans(parseQuery(printed))).toEqual(withoutSpans(parseQuery(text)));
          expectCompiledOrRejected(text);
        }),
        bounded(0.5),
      );
    },
    timeoutMs,
  );
});

function expectCompiledOrRejected(text: string): void {
  // `with` stands for a rejected query, whose error has been checked.
  const sql = orRejected(text, () => compileQuery(text, project).sql) ?? 'with';
  expect(sql).toMatch(/^(with|select|\()/);
}

/** The result of `make`; undefined if it throws a DialectError with a valid position. Any other error is a bug. */
function orRejected(text: string, make: () => string): string | undefined {
  let rejection: DialectErrorFields;
  try {
    return make();
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'DialectError') throw error;
    rejection = error as unknown as DialectErrorFields;
  }
  const { line, column, offset, length, excerpt, summary } = rejection;
  const lines = text.split(/\r\n|\n|\r/);
  expect(line).toBeGreaterThanOrEqual(1);
  expect(line).toBeLessThanOrEqual(lines.length);
  expect(column).toBeLessThanOrEqual(Array.from(lines[line - 1] ?? '').length + 1);
  expect(offset + length).toBeLessThanOrEqual(text.length);
  expect(excerpt).toMatch(/\n\s*\^+$/);
  expect(summary.length).toBeGreaterThan(10);
  return undefined;
}

interface DialectErrorFields {
  readonly line: number;
  readonly column: number;
  readonly offset: number;
  readonly length: number;
  readonly excerpt: string;
  readonly summary: string;
}

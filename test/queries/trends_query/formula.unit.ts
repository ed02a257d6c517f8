import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseFormula } from '../../../src/queries/trends_query/formula.ts';
import { randomCases } from '../../setup/effort.ts';

/** A formula as text with as few parentheses as possible, and its value for A = 6, B = 4 and C = 0. */
interface WrittenFormula {
  readonly text: string;
  readonly value: number;
  /** Its precedence: 1 sums, 2 products, 3 signs, 4 powers, 5 the rest. */
  readonly level: number;
}

const values = [6, 4, 0];
const finite = (value: number): number => (Number.isFinite(value) ? value : 0);
const within = ({ text, level }: WrittenFormula, least: number): string =>
  level < least ? `(${text})` : text;

const operators: readonly (readonly [string, number, (a: number, b: number) => number])[] = [
  ['+', 1, (a, b) => a + b],
  ['-', 1, (a, b) => a - b],
  ['*', 2, (a, b) => a * b],
  ['/', 2, (a, b) => (b === 0 ? 0 : a / b)],
  ['%', 2, (a, b) => (b === 0 ? 0 : a % b)],
];

const { formula } = fc.letrec<{ formula: WrittenFormula }>((tie) => ({
  formula: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom('A', 'b', 'C').map((text) => ({
      text,
      value: values[text.toUpperCase().charCodeAt(0) - 65] ?? NaN,
      level: 5,
    })),
    fc.constantFrom('2', '0.5', '.25', '1e1').map((text) => ({ text, value: Number(text), level: 5 })),
    fc
      .tuple(fc.constantFrom(...operators), tie('formula'), tie('formula'))
      .map(([[sign, level, compute], left, right]) => ({
        text: `${within(left, level)} ${sign} ${within(right, level + 1)}`,
        value: finite(compute(left.value, right.value)),
        level,
      })),
    tie('formula').map((inner) => ({ text: `-${within(inner, 3)}`, value: -inner.value, level: 3 })),
    fc.tuple(tie('formula'), tie('formula')).map(([base, exponent]) => ({
      text: `${within(base, 5)}**${within(exponent, 3)}`,
      value: finite(base.value ** exponent.value),
      level: 4,
    })),
  ),
}));

describe('formulas', () => {
  it('compute arithmetic, and 0 where the result is not a number', () => {
    fc.assert(
      fc.property(formula, ({ text, value }) => {
        const { evaluate } = parseFormula(text);
        expect(evaluate((index) => values[index] ?? NaN) + 0).toBeCloseTo(finite(value) + 0, 6);
      }),
      { numRuns: randomCases(500) },
    );
  });

  it.each([
    ['A / (A + B) * 100', 60],
    ['2 ** 3 ** 2', 512],
    ['-2 ** 2', -4],
    ['A / C', 0],
    ['A % C', 0],
    ['10 ** 400', 0],
  ])('%s is %d', (text, value) => {
    expect(parseFormula(text).evaluate((index) => values[index] ?? NaN)).toBe(value);
  });

  it('list the series that they read', () => {
    expect(parseFormula('c + A * a').series).toEqual([2, 0]);
  });

  it.each([
    ['', 'The formula is incomplete.', 0],
    ['A +', 'The formula is incomplete.', 3],
    ['A B', 'Expected an operator before `B`.', 2],
    ['(A', 'A parenthesis is not closed.', 0],
    ['A + $', '`$` is not allowed in a formula.', 4],
    ['sum + 1', '`sum` is not a series. Series are single letters, A for the first.', 0],
    ['A * / B', 'Expected a series or a number before `/`.', 4],
    ['A;drop table events', '`;` is not allowed in a formula.', 1],
    ['A+'.repeat(600), 'The formula is too long.', 1001],
  ])('%s is rejected with an offset', (text, message, offset) => {
    expect(() => parseFormula(text)).toThrow(expect.objectContaining({ message, offset }));
  });
});

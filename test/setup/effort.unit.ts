import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { pairsOf } from './effort.ts';

describe('the cases of a matrix', () => {
  it('have each two values of two factors, and no combination twice', () => {
    const counts = fc.tuple(...Array.from({ length: 3 }, () => fc.integer({ min: 1, max: 5 })));
    fc.assert(
      fc.property(counts, (lengths) => {
        const [one = [], two = [], three = []] = lengths.map((length) => [...Array(length).keys()]);
        const cases = pairsOf({ one, two, three });

        const found = cases.flatMap((row) => [
          `one two ${row.one} ${row.two}`,
          `one three ${row.one} ${row.three}`,
          `two three ${row.two} ${row.three}`,
        ]);
        const pairs = one.length * two.length + one.length * three.length + two.length * three.length;
        expect(new Set(found).size).toBe(pairs);
        expect(new Set(cases.map((row) => JSON.stringify(row))).size).toBe(cases.length);
      }),
    );
  });

  it('of two factors are all combinations', () => {
    expect(pairsOf({ store: ['a', 'b'], format: [1, 2] })).toHaveLength(4);
  });
});

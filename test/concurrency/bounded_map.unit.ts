import { expect, it } from '@jest/globals';
import { BoundedMap } from '../../src/concurrency/bounded_map.ts';

it('a full map forgets what was set first, unless it was set again', () => {
  const map = new BoundedMap<string, number>(2);
  for (const [value, key] of ['a', 'b', 'a', 'c'].entries()) map.set(key, value);
  expect([...map]).toEqual([
    ['a', 2],
    ['c', 3],
  ]);
});

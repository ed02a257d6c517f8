import { describe, expect, it } from '@jest/globals';
import { createRecentIds } from '../../../src/temporal/clients/run_starter.ts';

describe('a bounded set of ids', () => {
  it('drops the oldest id when it is full', () => {
    const ids = createRecentIds(2);
    for (const id of ['a', 'b', 'a', 'c']) ids.add(id);
    expect(['a', 'b', 'c'].map((id) => ids.has(id))).toEqual([false, true, true]);
  });
});

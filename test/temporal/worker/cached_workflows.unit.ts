import { describe, expect, it } from '@jest/globals';
import { maxCachedWorkflows } from '../../../src/temporal/worker/workers.ts';

const gigabyte = 1024 ** 3;

describe('the workflow cache of a worker', () => {
  it.each([
    [0.5, 200],
    [4, 780],
    [64, 2_000],
  ])('takes a tenth of %f GB of memory, within bounds: %i executions', (gigabytes, expected) => {
    expect(maxCachedWorkflows({ EXPORTD_MAX_CACHED_WORKFLOWS: undefined }, gigabytes * gigabyte)).toBe(
      expected,
    );
  });

  it('has the size of the setting', () => {
    expect(maxCachedWorkflows({ EXPORTD_MAX_CACHED_WORKFLOWS: 7 }, gigabyte)).toBe(7);
  });
});

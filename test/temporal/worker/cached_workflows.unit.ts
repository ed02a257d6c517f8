import { describe, expect, it } from '@jest/globals';
import { maxCachedWorkflows } from '../../../src/temporal/worker/cached_workflows.ts';

const gigabyte = 1024 ** 3;

describe('the executions that a worker keeps', () => {
  it.each([
    [0.5, 200],
    [4, 780],
    [64, 2_000],
  ])('of %f GB of memory take a tenth, within bounds: %i', (gigabytes, kept) => {
    expect(maxCachedWorkflows({ EXPORTD_MAX_CACHED_WORKFLOWS: undefined }, gigabytes * gigabyte)).toBe(kept);
  });

  it('are as many as the setting says', () => {
    expect(maxCachedWorkflows({ EXPORTD_MAX_CACHED_WORKFLOWS: 7 }, gigabyte)).toBe(7);
  });
});

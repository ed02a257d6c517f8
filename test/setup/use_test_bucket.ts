import { afterAll, beforeAll } from '@jest/globals';
import { createPlanned, planBucket, type TestBucket } from './bucket.ts';

/** Creates an empty bucket before the tests of the calling file. Call it outside of hooks and tests. */
export function useTestBucket(): TestBucket {
  const bucket = planBucket();
  beforeAll(() => createPlanned(bucket));
  afterAll(() => bucket.client.destroy());
  return bucket;
}

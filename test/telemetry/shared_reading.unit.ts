import { describe, expect, it } from '@jest/globals';
import { shareReading } from '../../src/telemetry/metrics.ts';

/** A reading that ends when the test says so, and how often it was started. */
function readingOf() {
  const reads: PromiseWithResolvers<string>[] = [];
  return {
    reads,
    read: () => {
      const next = Promise.withResolvers<string>();
      reads.push(next);
      return next.promise;
    },
  };
}

describe('a shared reading', () => {
  it('is read once for all that ask while it runs, and while it is young', async () => {
    const { reads, read } = readingOf();
    const shared = shareReading(read, 60_000);
    const [one, other] = [shared.read(), shared.read()];
    reads[0]?.resolve('value');
    expect([await one, await other, await shared.read(), reads.length]).toEqual([
      'value',
      'value',
      'value',
      1,
    ]);
  });

  it('is read again when it is old', async () => {
    const { reads, read } = readingOf();
    const shared = shareReading(read, 0);
    const first = shared.read();
    reads[0]?.resolve('first');
    await first;
    const second = shared.read();
    reads[1]?.resolve('second');
    expect(await second).toBe('second');
  });

  it('is undefined when it fails, and is read again', async () => {
    const { reads, read } = readingOf();
    const shared = shareReading(read, 0);
    const failed = shared.read();
    reads[0]?.reject(new Error('no connection'));
    expect(await failed).toBeUndefined();
    const next = shared.read();
    reads[1]?.resolve('value');
    expect(await next).toBe('value');
  });
});

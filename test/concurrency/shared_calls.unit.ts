import { describe, expect, it } from '@jest/globals';
import { createSharedCalls } from '../../src/concurrency/shared_calls.ts';

const { signal } = new AbortController();

/** Work that ends when it is told to, with its number. */
function createWork() {
  const begun: PromiseWithResolvers<number>[] = [];
  const work = (): Promise<number> => {
    const one = Promise.withResolvers<number>();
    begun.push(one);
    return one.promise;
  };
  const end = (number: number): void => begun[number]?.resolve(number);
  const fail = (number: number, error: Error): void => begun[number]?.reject(error);
  return { work, begun, end, fail };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('calls at the same time', () => {
  it('share the next work, which begins after all of them', async () => {
    const { work, begun, end } = createWork();
    const { call } = createSharedCalls<number>();
    const [first, second, third] = [1, 2, 3].map(() => call('a', signal, work));
    expect(begun).toHaveLength(1);
    end(0);
    expect(await first).toBe(0);
    await turn();
    expect(begun).toHaveLength(2);
    // The second has begun, so that a call now needs a third.
    const fourth = call('a', signal, work);
    end(1);
    expect(await Promise.all([second, third])).toEqual([1, 1]);
    await turn();
    expect(begun).toHaveLength(3);
    end(2);
    expect(await fourth).toBe(2);
    await turn();
    const fifth = call('a', signal, work);
    expect(begun).toHaveLength(4);
    end(3);
    expect(await fifth).toBe(3);
  });

  it('of other keys do not wait for each other', () => {
    const { work, begun } = createWork();
    const { call } = createSharedCalls<number>();
    void call('a', signal, work);
    void call('b', signal, work);
    expect(begun).toHaveLength(2);
  });

  it('fail alone: the next one begins', async () => {
    const { work, begun, end, fail } = createWork();
    const { call } = createSharedCalls<number>();
    const first = call('a', signal, work);
    const second = call('a', signal, work);
    fail(0, new Error('broken'));
    await expect(first).rejects.toThrow('broken');
    await turn();
    expect(begun).toHaveLength(2);
    end(1);
    expect(await second).toBe(1);
  });

  it('end for one that is aborted, and not for the others', async () => {
    const { work, begun, end } = createWork();
    const { call } = createSharedCalls<number>();
    const aborted = new AbortController();
    const first = call('a', aborted.signal, work);
    const second = call('a', signal, work);
    aborted.abort(new Error('cancelled'));
    await expect(first).rejects.toThrow('cancelled');
    await expect(call('a', aborted.signal, work)).rejects.toThrow('cancelled');
    end(0);
    await turn();
    expect(begun).toHaveLength(2);
    end(1);
    expect(await second).toBe(1);
  });

  it('do not wait for work that never ends', async () => {
    const { work, begun, end } = createWork();
    const { call } = createSharedCalls<number>(10);
    void call('a', signal, work);
    const second = call('a', signal, work);
    const third = call('a', signal, work);
    while (begun.length < 2) await turn();
    end(1);
    expect(await Promise.all([second, third])).toEqual([1, 1]);
    const fourth = call('a', signal, work);
    expect(begun).toHaveLength(3);
    end(2);
    expect(await fourth).toBe(2);
  });
});

import { describe, expect, it } from '@jest/globals';
import { createKeyedSemaphore, type PermitLimits } from '../../src/concurrency/keyed_semaphore.ts';

/** Lets everything that was granted or rejected continue. */
const settle = () => new Promise(setImmediate);

/** A semaphore whose callers are named after their key: `a1` and `a2` are of the key `a`. */
function openSemaphore(limits: PermitLimits) {
  const semaphore = createKeyedSemaphore<string, string>(limits);
  const granted: string[] = [];
  const releases = new Map<string, () => void>();
  return {
    semaphore,
    granted,
    request: async (name: string, options: Parameters<typeof semaphore.acquire>[1] = {}) => {
      const acquiring = semaphore.acquire(name.charAt(0), options).then((release) => {
        granted.push(name);
        releases.set(name, release);
      });
      // Rejections are awaited by the test that expects them.
      acquiring.catch(() => undefined);
      await settle();
      return { acquiring };
    },
    release: async (name: string) => {
      releases.get(name)?.();
      await settle();
    },
  };
}

describe('a keyed semaphore', () => {
  it('limits each key by itself and serves the callers of a key in order of arrival', async () => {
    const { request, release, granted } = openSemaphore({ perKey: 1 });
    for (const name of ['a1', 'a2', 'a3', 'b1']) await request(name);
    expect(granted).toEqual(['a1', 'b1']);
    await release('a1');
    expect(granted).toEqual(['a1', 'b1', 'a2']);
    await release('a2');
    expect(granted.at(-1)).toBe('a3');
  });

  it('gives a free permit of a key to the member that holds the fewest, also while the clock goes on', async () => {
    let now = 0;
    const semaphore = createKeyedSemaphore<string, string>({ total: 2 }, () => (now += 1));
    const granted: string[] = [];
    const releases = [
      await semaphore.acquire('a', { member: 'one' }),
      await semaphore.acquire('a', { member: 'one' }),
    ];
    for (const member of ['one', 'two'])
      void semaphore.acquire('a', { member }).then(() => granted.push(member));
    releases[0]?.();
    await settle();
    expect(granted).toEqual(['two']);
  });

  it('serves the callers of a key by their rank, and those of a rank in order of arrival', async () => {
    const { request, release, granted } = openSemaphore({ total: 1 });
    for (const [name, rank] of [
      ['a1', 5],
      ['a2', 2],
      ['a3', 1],
      ['a4', 2],
      ['a5', 0],
    ] as const)
      await request(name, { rank });
    for (const name of ['a1', 'a5', 'a3', 'a2']) await release(name);
    expect(granted).toEqual(['a1', 'a5', 'a3', 'a2', 'a4']);
  });

  it('gives a free permit of the total to the key that holds the fewest', async () => {
    const { request, release, granted } = openSemaphore({ total: 3 });
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1']) await request(name);
    await release('a1');
    expect(granted).toEqual(['a1', 'a2', 'a3', 'b1']);
  });

  it('releases a permit once, however often its function is called', async () => {
    const { request, release, granted } = openSemaphore({ total: 1 });
    for (const name of ['a1', 'a2', 'a3']) await request(name);
    await release('a1');
    await release('a1');
    expect(granted).toEqual(['a1', 'a2']);
  });

  it('lends permits up to its limit, and takes a reclaimed one back at the next release', async () => {
    const { semaphore, request, release, granted } = openSemaphore({ total: 1, lendable: 1 });
    await request('a1');
    await request('a2');
    const reclaim = semaphore.lend();
    expect(semaphore.lent).toBe(1);
    expect(semaphore.lend()).toBeUndefined();
    await settle();
    expect(granted).toEqual(['a1', 'a2']);
    reclaim?.();
    reclaim?.();
    expect(semaphore.lent).toBe(0);
    await request('a3');
    await release('a1');
    expect(granted).toEqual(['a1', 'a2']);
    await release('a2');
    expect(granted).toEqual(['a1', 'a2', 'a3']);
  });

  it('passes over a caller that was aborted, that waited too long or that was rejected', async () => {
    const { semaphore, request, release, granted } = openSemaphore({ total: 1 });
    await request('a1');
    const abort = new AbortController();
    const aborted = await request('a2', { signal: abort.signal });
    const late = request('b1', { timeout: { ms: 1, error: () => new Error('late') } });
    await expect((await late).acquiring).rejects.toThrow('late');
    const rejected = await request('c1');
    await request('a3');
    abort.abort(new Error('aborted'));
    for (const waiter of semaphore.waiting)
      if (waiter.key === 'c') waiter.reject(() => new Error('rejected'));
    await expect(aborted.acquiring).rejects.toThrow('aborted');
    await expect(rejected.acquiring).rejects.toThrow('rejected');
    await release('a1');
    expect(granted).toEqual(['a1', 'a3']);
  });

  it('tells a caller once that it waits for its own key while permits are free', async () => {
    const { request, release } = openSemaphore({ total: 3, perKey: 1 });
    let limited = 0;
    const onLimited = () => {
      limited += 1;
    };
    for (const name of ['a1', 'b1', 'a2']) await request(name, { onLimited });
    expect(limited).toBe(1);
    await release('b1');
    expect(limited).toBe(1);
  });
});

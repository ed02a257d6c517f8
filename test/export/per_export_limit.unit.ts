import { describe, expect, it } from '@jest/globals';
import { createPerExportLimit } from '../../src/export/per_export_limit.ts';

/** A limit, and how many slots its waiters yield. */
function limitOf(perExport: number) {
  let yielded = 0;
  const yieldSlot = () => {
    yielded += 1;
    return () => {
      yielded -= 1;
    };
  };
  return { ...createPerExportLimit(perExport, { yieldSlot }), yielded: () => yielded };
}
const never = new AbortController().signal;

describe('the limit per export', () => {
  it('applies to each export; waiters yield their slots and proceed in order', async () => {
    const { acquire, yielded } = limitOf(1);
    const first = await acquire('a', never);
    await acquire('b', never);
    const order: string[] = [];
    const second = acquire('a', never).then((release) => {
      order.push('second');
      return release;
    });
    const third = acquire('a', never).then(() => order.push('third'));
    expect(yielded()).toBe(2);
    first();
    first();
    (await second)();
    await third;
    expect(order).toEqual(['second', 'third']);
    expect(yielded()).toBe(0);
  });

  it('reserves nothing for a cancelled waiter', async () => {
    const { acquire, yielded } = limitOf(1);
    const first = await acquire('a', never);
    const cancelled = new AbortController();
    const waiting = acquire('a', cancelled.signal);
    const reason = new Error('CANCELLED');
    cancelled.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(acquire('a', cancelled.signal)).rejects.toBe(reason);
    first();
    expect(await acquire('a', never)).toEqual(expect.any(Function));
    expect(yielded()).toBe(0);
  });
});

import { describe, expect, it } from '@jest/globals';
import { createExportTurns } from '../../activities/export_turns.ts';

/** Turns, and how many slots are lent. */
function turnsOf(perExport: number) {
  let lent = 0;
  const lend = () => {
    lent += 1;
    return () => {
      lent -= 1;
    };
  };
  return { ...createExportTurns(perExport, { lend }), lent: () => lent };
}
const never = new AbortController().signal;

describe('the turns of exports', () => {
  it('are as many of each export as there may be; who waits lends its slot, and comes in order', async () => {
    const { take, lent } = turnsOf(1);
    const first = await take('a', never);
    await take('b', never);
    const order: string[] = [];
    const second = take('a', never).then((giveBack) => {
      order.push('second');
      return giveBack;
    });
    const third = take('a', never).then(() => order.push('third'));
    expect(lent()).toBe(2);
    first();
    first();
    (await second)();
    await third;
    expect(order).toEqual(['second', 'third']);
    expect(lent()).toBe(0);
  });

  it('are not kept for one that was cancelled', async () => {
    const { take, lent } = turnsOf(1);
    const first = await take('a', never);
    const cancelled = new AbortController();
    const waiting = take('a', cancelled.signal);
    const reason = new Error('CANCELLED');
    cancelled.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(take('a', cancelled.signal)).rejects.toBe(reason);
    first();
    expect(await take('a', never)).toEqual(expect.any(Function));
    expect(lent()).toBe(0);
  });
});

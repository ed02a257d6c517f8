import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createByteBudget, type ByteAccount } from '../../src/encoding/byte_budget.ts';

const neverAborted = new AbortController().signal;

/** Whether a promise is settled once everything that can go on has gone on. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  promise.then(settle, settle);
  await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

describe('a byte budget', () => {
  it('gives room in the order of asking, and lets who holds no rows have some at once', async () => {
    const budget = createByteBudget(100);
    const [one, other] = [budget.openAccount(), budget.openAccount()];
    await one.takeRows(80, neverAborted);
    await other.takeRows(90, neverAborted);
    expect(one.isOver()).toBe(true);
    const large = one.takeRows(60, neverAborted);
    const small = other.takeRows(1, neverAborted);
    other.giveRows(80);
    expect(await isSettled(large)).toBe(false);
    expect(await isSettled(small)).toBe(false);
    one.giveRows(70);
    await Promise.all([large, small]);
    // Holds no rows, only what has been encoded of them.
    one.giveRows(70);
    one.addEncoded(500);
    await one.takeRows(10, neverAborted);
    expect(await isSettled(other.takeRows(1, neverAborted))).toBe(false);
    one.giveEncoded(500);
    expect(other.isOver()).toBe(false);
  });

  it('gives back everything when an account is closed, whatever comes afterwards', async () => {
    const budget = createByteBudget(100);
    const [one, other] = [budget.openAccount(), budget.openAccount()];
    await one.takeRows(50, neverAborted);
    one.addEncoded(60);
    await other.takeRows(10, neverAborted);
    const waiting = other.takeRows(10, neverAborted);
    expect(await isSettled(waiting)).toBe(false);
    one.close();
    await waiting;
    one.addEncoded(1_000);
    one.giveRows(-1_000);
    expect(other.isOver()).toBe(false);
  });

  it('ends a wait with the reason of its signal, and serves those behind it', async () => {
    const budget = createByteBudget(100);
    const [one, other] = [budget.openAccount(), budget.openAccount()];
    await one.takeRows(50, neverAborted);
    await other.takeRows(40, neverAborted);
    const abort = new AbortController();
    const reason = new Error('the run was cancelled');
    const large = one.takeRows(90, abort.signal);
    const small = other.takeRows(5, neverAborted);
    expect(await isSettled(small)).toBe(false);
    abort.abort(reason);
    await expect(large).rejects.toBe(reason);
    await small;
    await expect(one.takeRows(1, abort.signal)).rejects.toBe(reason);
  });

  it('never leaves everybody waiting, however stretches take, encode and gather', async () => {
    const stretch = fc.array(fc.record({ rows: fc.integer({ min: 1, max: 80 }), part: fc.boolean() }), {
      minLength: 1,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(stretch, { minLength: 1, maxLength: 5 }), async (stretches) => {
        const budget = createByteBudget(100);
        const accounts: ByteAccount[] = [];
        const run = async (pages: (typeof stretches)[number]): Promise<void> => {
          const account = budget.openAccount();
          accounts.push(account);
          let gathered = 0;
          for (const { rows, part } of pages) {
            await account.takeRows(rows, neverAborted);
            await Promise.resolve();
            account.addEncoded(rows);
            account.giveRows(rows);
            gathered += rows;
            if (!part) continue;
            account.giveEncoded(gathered);
            gathered = 0;
          }
          account.close();
        };
        await Promise.all(stretches.map(run));
        expect(accounts.map((account) => account.isOver())).not.toContain(true);
      }),
    );
  });
});

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createMemoryBudget, type MemoryReservation } from '../../src/encoding/memory.ts';

const neverAborted = new AbortController().signal;

/** Whether a promise is settled after all pending work has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  promise.then(settle, settle);
  await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

describe('a memory budget', () => {
  it('grants requests in order, and immediately to a reservation without rows', async () => {
    const budget = createMemoryBudget(100);
    const [one, other] = [budget.openReservation(), budget.openReservation()];
    await one.reserveRows(80, neverAborted);
    await other.reserveRows(90, neverAborted);
    expect(one.isOverBudget()).toBe(true);
    const large = one.reserveRows(60, neverAborted);
    const small = other.reserveRows(1, neverAborted);
    other.releaseRows(80);
    expect(await isSettled(large)).toBe(false);
    expect(await isSettled(small)).toBe(false);
    one.releaseRows(70);
    await Promise.all([large, small]);
    // Holds no rows, only encoded bytes.
    one.releaseRows(70);
    one.reserveEncoded(500);
    await one.reserveRows(10, neverAborted);
    expect(await isSettled(other.reserveRows(1, neverAborted))).toBe(false);
    one.releaseEncoded(500);
    expect(other.isOverBudget()).toBe(false);
  });

  it('releases everything when a reservation is closed', async () => {
    const budget = createMemoryBudget(100);
    const [one, other] = [budget.openReservation(), budget.openReservation()];
    await one.reserveRows(50, neverAborted);
    one.reserveEncoded(60);
    await other.reserveRows(10, neverAborted);
    const waiting = other.reserveRows(10, neverAborted);
    expect(await isSettled(waiting)).toBe(false);
    one.close();
    await waiting;
    one.reserveEncoded(1_000);
    one.releaseRows(-1_000);
    expect(other.isOverBudget()).toBe(false);
  });

  it('rejects an aborted request with the reason of its signal, and serves the others', async () => {
    const budget = createMemoryBudget(100);
    const [one, other] = [budget.openReservation(), budget.openReservation()];
    await one.reserveRows(50, neverAborted);
    await other.reserveRows(40, neverAborted);
    const abort = new AbortController();
    const reason = new Error('the run was cancelled');
    const large = one.reserveRows(90, abort.signal);
    const small = other.reserveRows(5, neverAborted);
    expect(await isSettled(small)).toBe(false);
    abort.abort(reason);
    await expect(large).rejects.toBe(reason);
    await small;
    await expect(one.reserveRows(1, abort.signal)).rejects.toBe(reason);
  });

  it('never deadlocks', async () => {
    const keyRangeArb = fc.array(fc.record({ rows: fc.integer({ min: 1, max: 80 }), part: fc.boolean() }), {
      minLength: 1,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(keyRangeArb, { minLength: 1, maxLength: 5 }), async (keyRanges) => {
        const budget = createMemoryBudget(100);
        const accounts: MemoryReservation[] = [];
        const run = async (pages: (typeof keyRanges)[number]): Promise<void> => {
          const account = budget.openReservation();
          accounts.push(account);
          let gathered = 0;
          for (const { rows, part } of pages) {
            await account.reserveRows(rows, neverAborted);
            await Promise.resolve();
            account.reserveEncoded(rows);
            account.releaseRows(rows);
            gathered += rows;
            if (!part) continue;
            account.releaseEncoded(gathered);
            gathered = 0;
          }
          account.close();
        };
        await Promise.all(keyRanges.map(run));
        expect(accounts.map((account) => account.isOverBudget())).not.toContain(true);
      }),
    );
  });
});

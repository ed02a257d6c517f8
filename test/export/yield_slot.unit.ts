import { expect, it } from '@jest/globals';
import { yieldSlotWhileStalled } from '../../src/export/yield_slot.ts';
import { waitFor } from '../setup/wait_for.ts';

it('a slot is yielded at once when the work reports a stall, and reclaimed after progress and at the end', async () => {
  let [rows, yielded] = [0, 0];
  const slots = {
    yieldSlot: () => {
      yielded += 1;
      return () => {
        yielded -= 1;
      };
    },
  };
  const seen: number[] = [];
  await yieldSlotWhileStalled(
    slots,
    60_000,
    () => rows,
    (onStall) => {
      onStall();
      onStall();
      seen.push(yielded);
      return Promise.resolve();
    },
  );
  expect([seen, yielded]).toEqual([[1], 0]);

  await yieldSlotWhileStalled(
    slots,
    100,
    () => rows,
    async (onStall) => {
      onStall();
      rows += 1;
      await waitFor(() => yielded === 0, 'the slot is reclaimed');
      await waitFor(() => yielded === 1, 'the slot is yielded when the work makes no progress');
    },
  );
  expect(yielded).toBe(0);
});

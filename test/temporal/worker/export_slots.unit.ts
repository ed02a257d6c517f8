import { describe, expect, it } from '@jest/globals';
import { createExportSlots } from '../../../src/temporal/worker/export_slots.ts';

const context = {
  slotType: 'activity',
  taskQueue: 'exports',
  workerIdentity: 'test',
  workerBuildId: 'test',
  isSticky: false,
} as const;
const never = new AbortController().signal;

const slotsOf = (own: number, lendable: number) =>
  createExportSlots({ EXPORTD_EXPORT_SLOTS: own, EXPORTD_MAX_YIELDED_SLOTS: lendable });

describe('the slots of the export worker', () => {
  it('are as many as there are, and the next is given when one is free again', async () => {
    const { supplier } = slotsOf(2, 0);
    const first = await supplier.reserveSlot(context, never);
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
    expect(supplier.tryReserveSlot(context)).toBeNull();
    const third = supplier.reserveSlot(context, never);
    supplier.releaseSlot({ permit: first });
    await third;
    expect(supplier.tryReserveSlot(context)).toBeNull();
  });

  it('are given to whoever waits when one is lent, and not again once it was taken back', async () => {
    const slots = slotsOf(1, 1);
    const { supplier } = slots;
    await supplier.reserveSlot(context, never);
    const second = supplier.reserveSlot(context, never);
    const takeBack = slots.yieldSlot();
    const permit = await second;
    expect(slots.yieldSlot()).toBeUndefined();
    takeBack?.();
    takeBack?.();
    supplier.releaseSlot({ permit });
    expect(supplier.tryReserveSlot(context)).toBeNull();
    expect(slots.yieldSlot()).toBeDefined();
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
  });

  it('are not kept for a request that was given up', async () => {
    const { supplier } = slotsOf(1, 0);
    const permit = await supplier.reserveSlot(context, never);
    const givenUp = new AbortController();
    const waiting = supplier.reserveSlot(context, givenUp.signal);
    const reason = new Error('Request Cancelled');
    givenUp.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    supplier.releaseSlot({ permit });
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
  });

  it('are not kept for a request that was given up before it came', async () => {
    const { supplier } = slotsOf(1, 0);
    const permit = await supplier.reserveSlot(context, never);
    const reason = new Error('Request Cancelled');
    const waiting = supplier.reserveSlot(context, AbortSignal.abort(reason));
    supplier.releaseSlot({ permit });
    await expect(waiting).rejects.toBe(reason);
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
  });
});

import { describe, expect, it } from '@jest/globals';
import { createActivitySlots, maxCachedWorkflows } from '../../../src/temporal/worker/workers.ts';

describe('the activity slots of a worker', () => {
  const context = {
    slotType: 'activity',
    taskQueue: 'exports',
    workerIdentity: 'test',
    workerBuildId: 'test',
    isSticky: false,
  } as const;
  const never = new AbortController().signal;

  it('are limited, and the next request waits for a released slot', async () => {
    const { supplier } = createActivitySlots(2, 0);
    const first = await supplier.reserveSlot(context, never);
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
    expect(supplier.tryReserveSlot(context)).toBeNull();
    const third = supplier.reserveSlot(context, never);
    supplier.releaseSlot({ permit: first });
    await third;
    expect(supplier.tryReserveSlot(context)).toBeNull();
  });

  it('serve a waiting request when one is yielded, until it is reclaimed', async () => {
    const slots = createActivitySlots(1, 1);
    const { supplier } = slots;
    await supplier.reserveSlot(context, never);
    const second = supplier.reserveSlot(context, never);
    const reclaim = slots.yieldSlot();
    const permit = await second;
    expect(slots.yieldSlot()).toBeUndefined();
    reclaim?.();
    reclaim?.();
    supplier.releaseSlot({ permit });
    expect(supplier.tryReserveSlot(context)).toBeNull();
    expect(slots.yieldSlot()).toBeDefined();
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
  });

  it('are not reserved for an aborted request', async () => {
    const { supplier } = createActivitySlots(1, 0);
    const permit = await supplier.reserveSlot(context, never);
    const aborted = new AbortController();
    const waiting = supplier.reserveSlot(context, aborted.signal);
    const reason = new Error('Request Cancelled');
    aborted.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    supplier.releaseSlot({ permit });
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
  });

  it('are not reserved for a request that was aborted before it arrived', async () => {
    const { supplier } = createActivitySlots(1, 0);
    const permit = await supplier.reserveSlot(context, never);
    const reason = new Error('Request Cancelled');
    const waiting = supplier.reserveSlot(context, AbortSignal.abort(reason));
    supplier.releaseSlot({ permit });
    await expect(waiting).rejects.toBe(reason);
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
  });
});

describe('the workflow cache of a worker', () => {
  const gigabyte = 1024 ** 3;

  it.each([
    [0.5, 200],
    [4, 780],
    [64, 2_000],
  ])('takes a tenth of %f GB of memory, within bounds: %i executions', (gigabytes, expected) => {
    expect(maxCachedWorkflows(gigabytes * gigabyte)).toBe(expected);
  });
});

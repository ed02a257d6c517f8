import type { BarrierState, UnsettledBarrier } from '../../src/domain/barrier.ts';

/** Whether a barrier has been checked after its cutoff settled, and is still blocked. */
export const isUnsettled = (state: BarrierState): state is UnsettledBarrier =>
  state.phase !== 'settling' && state.phase !== 'open';

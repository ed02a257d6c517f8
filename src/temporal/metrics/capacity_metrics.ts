import { Gauge, type Registry } from 'prom-client';
import type { Settings } from '../../config/settings.ts';
import type { MemoryBudget } from '../../encoding/memory.ts';
import type { ActivitySlots } from '../worker/activity_slots.ts';

/** Registers the slots of a worker process, by their task queue, and the memory of its rows. */
export function registerCapacityMetrics(
  metrics: Registry,
  {
    slots,
    memory,
    settings,
  }: {
    readonly slots: Readonly<Record<'export' | 'query', Pick<ActivitySlots, 'use'>>>;
    readonly memory: Pick<MemoryBudget, 'held'>;
    readonly settings: Pick<Settings, 'EXPORTD_MEMORY_BUDGET'>;
  },
): void {
  const registers = [metrics];
  const gauge: Gauge = new Gauge({
    name: 'exportd_activity_slots',
    help:
      'Activity slots of this worker: `configured`, `running` an activity, and `yielded` to another one while theirs ' +
      'waits for a server that does not respond.',
    labelNames: ['queue', 'state'],
    registers,
    collect: () => {
      for (const [queue, { use }] of Object.entries(slots)) {
        const { slots: configured, running, yielded } = use();
        gauge.set({ queue, state: 'configured' }, configured);
        gauge.set({ queue, state: 'running' }, running);
        gauge.set({ queue, state: 'yielded' }, yielded);
      }
    },
  });
  const held: Gauge = new Gauge({
    name: 'exportd_reserved_memory_bytes',
    help: 'Memory of rows and encoded bytes of all runs of this worker.',
    registers,
    collect: () => held.set(memory.held()),
  });
  new Gauge({
    name: 'exportd_memory_budget_bytes',
    help: 'EXPORTD_MEMORY_BUDGET, above which this worker reads no further rows.',
    registers,
  }).set(settings.EXPORTD_MEMORY_BUDGET);
}

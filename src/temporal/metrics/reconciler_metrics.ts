import { Counter, Gauge, type Registry } from 'prom-client';
import type { ReconcilerStatistics } from '../reconcilers/statistics.ts';

/** Registers what the reconcilers of this process have done. Only one worker at a time has passes. */
export function registerReconcilerMetrics(
  metrics: Registry,
  statistics: () => readonly ReconcilerStatistics[],
): void {
  const registers = [metrics];
  const counterOf = (
    name: string,
    help: string,
    labels: readonly string[],
    read: (counter: Counter, statistics: ReconcilerStatistics) => void,
  ): void => {
    const counter: Counter = new Counter({
      name,
      help,
      labelNames: ['reconciler', ...labels],
      registers,
      collect: () => {
        // The sums are kept by the reconcilers, and a counter can only be increased.
        counter.reset();
        for (const one of statistics()) read(counter, one);
      },
    });
  };
  counterOf(
    'exportd_reconciler_passes_total',
    'Passes of a reconciler by outcome.',
    ['outcome'],
    (counter, { name, passes }) => {
      for (const [outcome, count] of Object.entries(passes))
        counter.inc({ reconciler: name, outcome }, count);
    },
  );
  counterOf(
    'exportd_reconciler_repaired_items_total',
    'Items that a reconciler started, restarted, cancelled, signalled or recorded.',
    [],
    (counter, { name, totals }) => counter.inc({ reconciler: name }, totals.repaired),
  );
  counterOf(
    'exportd_reconciler_failed_items_total',
    'Items that a reconciler could not decide or repair.',
    [],
    (counter, { name, totals }) => counter.inc({ reconciler: name }, totals.failed),
  );
  const lastPass: Gauge = new Gauge({
    name: 'exportd_reconciler_last_pass_timestamp_seconds',
    help: 'When the last pass of a reconciler started. Absent in workers that do not reconcile.',
    labelNames: ['reconciler'],
    registers,
    collect: () => {
      for (const { name, last_pass } of statistics())
        if (last_pass) lastPass.set({ reconciler: name }, Date.parse(last_pass.started_at) / 1_000);
    },
  });
}

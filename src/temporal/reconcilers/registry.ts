import { reconcileBackfills } from './backfills.ts';
import { reconcileCommands } from './commands.ts';
import { reconcileDeliveries } from './deliveries.ts';
import { reconcileMaintenance } from './maintenance.ts';
import { recoverManualSignals } from './manual_signals.ts';
import { cancelOrphanedExecutions } from './orphaned_executions.ts';
import { reconcileQueries } from './queries.ts';
import type { Reconciler, ReconcilerDependencies } from './reconciler.ts';
import { reconcileRuns } from './runs.ts';
import { reconcileSchedules } from './schedules.ts';

/** Every reconciler, in the order of a pass: schedules first, since runs and commands need them. */
const reconcilers: readonly Reconciler[] = [
  reconcileSchedules,
  recoverManualSignals,
  reconcileCommands,
  reconcileRuns,
  reconcileBackfills,
  reconcileMaintenance,
  cancelOrphanedExecutions,
  reconcileDeliveries,
  reconcileQueries,
];

/** Runs one pass of every reconciler. @throws ServiceError of @temporalio/client when Temporal does not respond */
export async function reconcile(dependencies: ReconcilerDependencies): Promise<void> {
  for (const reconciler of reconcilers) await reconciler(dependencies);
}

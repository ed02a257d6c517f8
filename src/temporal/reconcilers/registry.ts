import { reconcileBackfills } from './backfills.ts';
import { reconcileCommands } from './commands.ts';
import { cancelDroppedDeliveries, reconcileDeliveries } from './deliveries.ts';
import { reconcileMaintenance } from './maintenance.ts';
import { recoverManualSignals } from './manual_signals.ts';
import { cancelOrphanedExecutions } from './orphaned_executions.ts';
import { reconcileQueries } from './queries.ts';
import type { Reconciler } from './reconciler.ts';
import { deleteExpiredQueryResults, deleteExpiredRows } from './retention.ts';
import { reconcileRuns } from './runs.ts';
import { reconcileSchedules } from './schedules.ts';

/** Every reconciler by its name in logs and metrics. They do not depend on each other. */
export const reconcilers: Readonly<Record<string, Reconciler>> = {
  // A namespace that was lost comes back without them, and rejects every start that uses one.
  search_attributes: ({ ensureSearchAttributes }, { signal }) => ensureSearchAttributes(signal),
  schedules: reconcileSchedules,
  manual_signals: recoverManualSignals,
  commands: reconcileCommands,
  runs: reconcileRuns,
  backfills: reconcileBackfills,
  maintenance: reconcileMaintenance,
  orphaned_executions: cancelOrphanedExecutions,
  deliveries: reconcileDeliveries,
  dropped_deliveries: cancelDroppedDeliveries,
  queries: reconcileQueries,
  expired_rows: deleteExpiredRows,
  expired_queries: deleteExpiredQueryResults,
};

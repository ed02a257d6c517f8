import type { Settings } from '../src/config/settings.ts';
import type { ComparisonGroup } from '../src/decisions/comparisons.ts';
import { readDueMaintenance, type DueMaintenance } from '../src/decisions/due_maintenance.ts';
import {
  type BarriersOutcome,
  checkBarriers,
  settleRuns,
  type SettlingResult,
} from '../src/maintenance/settle_runs.ts';
import { cleanUpExport, type CleanUpOutcome } from '../src/maintenance/clean_up_export.ts';
import { compareIntervals, type ComparisonsOutcome } from '../src/maintenance/compare_intervals.ts';
import type { MaintenanceDependencies } from '../src/maintenance/maintenance_dependencies.ts';
import { wrapActivities, type ActivityContext } from './run_step.ts';

/** Names an export. Everything else is read from the journal. */
interface ExportInput {
  readonly batch_export_id: string;
}

interface MaintenanceActivityDependencies extends MaintenanceDependencies {
  readonly settings: Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT'>;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: () => ActivityContext;
}

export type MaintenanceActivities = ReturnType<typeof createMaintenanceActivities>;

/** The activities of `batchExportMaintenance` that work on buckets and on the source. */
export function createMaintenanceActivities(dependencies: MaintenanceActivityDependencies) {
  const { logger, context, settings } = dependencies;
  return wrapActivities(
    { logger, context, heartbeatTimeoutMs: settings.EXPORTD_HEARTBEAT_TIMEOUT },
    {
      /** Deletes the obsolete objects of an export and aborts its orphaned uploads. */
      cleanUpExport: async ({ signal }, { batch_export_id }: ExportInput): Promise<CleanUpOutcome> =>
        cleanUpExport(dependencies, batch_export_id, signal),

      /** Compares the due intervals of a project and selection with the source. */
      compareIntervals: async ({ signal }, group: ComparisonGroup): Promise<ComparisonsOutcome> =>
        compareIntervals(dependencies, group, signal),

      /** Checks which transactions still block the barriers of unsettled runs. */
      checkBarriers: async ({ signal }): Promise<BarriersOutcome> => checkBarriers(dependencies, signal),

      /** Compares the unsettled intervals of an export whose transactions have ended, and has them exported again. */
      settleRuns: async ({ signal }, { batch_export_id }: ExportInput): Promise<SettlingResult> =>
        settleRuns(dependencies, batch_export_id, signal),
    },
  );
}

/** The due tasks, and the settings that the workflow needs for them. */
export interface MaintenanceRound extends DueMaintenance {
  /** Milliseconds until the next round, unless this one has more to do. */
  readonly interval_ms: number;
  /** After how many rounds the workflow continues as new. */
  readonly continue_after: number;
  readonly heartbeat_timeout_ms: number;
  /** Maximum duration of one statement on the source. */
  readonly statement_timeout_ms: number;
}

export type MaintenancePlanner = ReturnType<typeof createMaintenancePlanner>;

/** Its local activities. */
export function createMaintenancePlanner({
  journal,
  policies,
  logger,
  settings,
}: Pick<MaintenanceDependencies, 'journal' | 'policies' | 'logger'> & {
  readonly settings: Pick<
    Settings,
    | 'EXPORTD_MAINTENANCE_INTERVAL'
    | 'EXPORTD_CONTINUE_AS_NEW_COMMANDS'
    | 'EXPORTD_HEARTBEAT_TIMEOUT'
    | 'EXPORTD_SOURCE_STATEMENT_TIMEOUT'
  >;
}) {
  return wrapActivities(
    { logger },
    {
      /** Finds the due tasks, except the excluded ones: delayed after a failure, or running. */
      findDueMaintenance: async (
        _,
        { excluded }: { readonly excluded: readonly string[] },
      ): Promise<MaintenanceRound> => ({
        ...(await readDueMaintenance(journal.pool, policies.maintenance, excluded)),
        interval_ms: settings.EXPORTD_MAINTENANCE_INTERVAL,
        continue_after: settings.EXPORTD_CONTINUE_AS_NEW_COMMANDS,
        heartbeat_timeout_ms: settings.EXPORTD_HEARTBEAT_TIMEOUT,
        statement_timeout_ms: settings.EXPORTD_SOURCE_STATEMENT_TIMEOUT,
      }),
    },
  );
}

import type { Settings } from '../src/config/settings.ts';
import type { ComparisonGroup } from '../src/decisions/due_comparisons.ts';
import { readDueMaintenance, type DueMaintenance } from '../src/decisions/due_maintenance.ts';
import { withApplicationFailures } from '../src/failures/application_failures.ts';
import { checkBarriers, type BarriersOutcome } from '../src/maintenance/check_barriers.ts';
import { cleanUpExport, type CleanUpOutcome } from '../src/maintenance/clean_up_export.ts';
import { compareIntervals, type ComparisonsOutcome } from '../src/maintenance/compare_intervals.ts';
import type { MaintenanceDependencies } from '../src/maintenance/maintenance_dependencies.ts';
import { settleRuns, type SettlingResult } from '../src/maintenance/settle_runs.ts';
import { currentActivity, withHeartbeats, type ActivityContext } from './heartbeats.ts';

/** Names an export. Everything else is read from the journal. */
interface ExportInput {
  readonly batch_export_id: string;
}

/** Dependencies of the maintenance's activities. */
export interface MaintenanceActivityDependencies extends MaintenanceDependencies {
  readonly settings: Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT'>;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: () => ActivityContext;
}

export type MaintenanceActivities = ReturnType<typeof createMaintenanceActivities>;

/** The activities of `batchExportMaintenance` that work on buckets and on the source. */
export function createMaintenanceActivities(dependencies: MaintenanceActivityDependencies) {
  const { logger, settings, context = currentActivity } = dependencies;
  const withHeartbeat = <Result>(work: (signal: AbortSignal) => Promise<Result>) =>
    withHeartbeats(context(), settings.EXPORTD_HEARTBEAT_TIMEOUT, () => undefined, work);
  return withApplicationFailures(
    {
      /** Deletes the obsolete objects of an export and aborts its orphaned uploads. */
      cleanUpExport: async ({ batch_export_id }: ExportInput): Promise<CleanUpOutcome> =>
        withHeartbeat((signal) => cleanUpExport(dependencies, batch_export_id, signal)),

      /** Compares the due intervals of a project and selection with the source. */
      compareIntervals: async (group: ComparisonGroup): Promise<ComparisonsOutcome> =>
        withHeartbeat((signal) => compareIntervals(dependencies, group, signal)),

      /** Checks which transactions still block the barriers of unsettled runs. */
      checkBarriers: async (): Promise<BarriersOutcome> =>
        withHeartbeat((signal) => checkBarriers(dependencies, signal)),

      /** Compares the unsettled intervals of an export whose transactions have ended, and has them exported again. */
      settleRuns: async ({ batch_export_id }: ExportInput): Promise<SettlingResult> =>
        withHeartbeat((signal) => settleRuns(dependencies, batch_export_id, signal)),
    },
    logger,
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
  return withApplicationFailures(
    {
      /** Finds the due tasks, except the excluded ones: delayed after a failure, or running. */
      findDueMaintenance: async ({
        excluded,
      }: {
        readonly excluded: readonly string[];
      }): Promise<MaintenanceRound> => ({
        ...(await readDueMaintenance(journal.pool, policies.maintenance, excluded)),
        interval_ms: settings.EXPORTD_MAINTENANCE_INTERVAL,
        continue_after: settings.EXPORTD_CONTINUE_AS_NEW_COMMANDS,
        heartbeat_timeout_ms: settings.EXPORTD_HEARTBEAT_TIMEOUT,
        statement_timeout_ms: settings.EXPORTD_SOURCE_STATEMENT_TIMEOUT,
      }),
    },
    logger,
  );
}

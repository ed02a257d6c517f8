import { findDueUpkeep, type DueUpkeep } from '../src/decisions/upkeep_due.ts';
import type { Settings } from '../src/config/settings.ts';
import { currentActivity, withHeartbeats } from './activity_context.ts';
import { withFailures } from './failures.ts';
import { cleanUpExport, type CleanUpOutcome } from './upkeep_clean_up.ts';
import type { UpkeepDependencies } from './upkeep_dependencies.ts';
import { recheckRuns, type RecheckOutcome } from './upkeep_recheck.ts';

/** Which export; everything else is read from the journal. */
interface ExportInput {
  readonly batch_export_id: string;
}

export type UpkeepActivities = ReturnType<typeof createUpkeepActivities>;

/** What is done outside the database after runs: in buckets, and in the source. */
export function createUpkeepActivities(dependencies: UpkeepDependencies) {
  const { logger, settings, context = currentActivity } = dependencies;
  const alive = <Result>(work: (signal: AbortSignal) => Promise<Result>) =>
    withHeartbeats(context(), settings.EXPORTD_HEARTBEAT_TIMEOUT_MS, () => undefined, work);
  return withFailures(
    {
      /** Removes the objects of an export that nobody needs any more. */
      cleanUpExport: async ({ batch_export_id }: ExportInput): Promise<CleanUpOutcome> =>
        alive((signal) => cleanUpExport(dependencies, batch_export_id, signal)),

      /** Counts the intervals of an export again that are due for it. */
      recheckRuns: async ({ batch_export_id }: ExportInput): Promise<RecheckOutcome> =>
        alive((signal) => recheckRuns(dependencies, batch_export_id, signal)),
    },
    logger,
  );
}

/** What a round of the upkeep begins with. */
export interface UpkeepRound extends DueUpkeep {
  /** Milliseconds until the next look, unless there is more to do. */
  readonly interval_ms: number;
  /** After how many rounds the workflow continues as new. */
  readonly continue_after: number;
  readonly heartbeat_timeout_ms: number;
  /** The longest that one statement on the source takes. */
  readonly statement_timeout_ms: number;
}

export type UpkeepLook = ReturnType<typeof createUpkeepLook>;

/** The local activity of the upkeep. */
export function createUpkeepLook({
  journal,
  policies,
  logger,
  settings,
}: Pick<UpkeepDependencies, 'journal' | 'policies' | 'logger'> & {
  readonly settings: Pick<
    Settings,
    | 'EXPORTD_UPKEEP_INTERVAL_MS'
    | 'EXPORTD_CONTINUE_AS_NEW_COMMANDS'
    | 'EXPORTD_HEARTBEAT_TIMEOUT_MS'
    | 'EXPORTD_SOURCE_STATEMENT_TIMEOUT_MS'
  >;
}) {
  return withFailures(
    {
      /** What there is to do now, without the tasks that are put off. */
      findUpkeep: async ({ put_off }: { put_off: readonly string[] }): Promise<UpkeepRound> => ({
        ...(await findDueUpkeep(journal.pool, policies.upkeep, put_off)),
        interval_ms: settings.EXPORTD_UPKEEP_INTERVAL_MS,
        continue_after: settings.EXPORTD_CONTINUE_AS_NEW_COMMANDS,
        heartbeat_timeout_ms: settings.EXPORTD_HEARTBEAT_TIMEOUT_MS,
        statement_timeout_ms: settings.EXPORTD_SOURCE_STATEMENT_TIMEOUT_MS,
      }),
    },
    logger,
  );
}

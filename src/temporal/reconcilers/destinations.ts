import { activeRunStatuses } from '../../domain/run_state.ts';
import { isDatabaseUnavailable, type Pool } from '../../journal/database.ts';
import type { Reconciler } from './check_executions.ts';

/** One of the exports that write to a destination now. */
interface UsedDestination {
  readonly circuit: string;
  readonly team_id: number;
  readonly batch_export_id: string;
  readonly config_version: number;
}

/**
 * Reads the destinations that may be probed: those that have been used, that an export will use again, and that have been silent for
 * `silentMs`, or are known to be out and due for a probe. One export of each.
 */
async function readSilentDestinations(pool: Pool, silentMs: number): Promise<UsedDestination[]> {
  const { rows } = await pool.query<UsedDestination>(
    `select distinct on (circuit.destination) circuit.destination as circuit, export.team_id,
       export.id as batch_export_id, config.version as config_version
     from exportd.batch_exports export
     join exportd.destination_configs config
       on config.batch_export_id = export.id and config.version = export.config_version
     join exportd.destination_circuits circuit on circuit.destination = config.circuit
     where not export.deleted and config.secrets_removed_at is null
       and (not export.paused and (export.end_at is null or export.end_at > clock_timestamp())
         or exists (select from exportd.batch_export_runs run where run.batch_export_id = export.id and run.status = any($2))
         or exists (select from exportd.backfills backfill
           where backfill.batch_export_id = export.id and backfill.finished_at is null and backfill.status <> 'Paused'))
       and case when circuit.opened_at is null
         then circuit.responded_at < clock_timestamp() - $1 * interval '1 millisecond'
         else circuit.next_probe_at < clock_timestamp() end
     order by circuit.destination, export.id`,
    [silentMs, activeRunStatuses],
  );
  return rows;
}

/**
 * Asks each destination that exports use, and that nothing has asked lately, for an object that does not exist: between the runs, an
 * outage is noticed and its end too.
 */
export const probeDestinations: Reconciler = async ({ journal, openLocation, settings }, pass) => {
  await pass.forEachItem(
    await readSilentDestinations(journal.pool, settings.EXPORTD_S3_PROBE_AFTER),
    ({ circuit }) => circuit,
    async (location) => {
      try {
        (await openLocation(location)).close();
      } catch (error) {
        // The circuit says that a destination is out, and the runs what is wrong with a config.
        if (isDatabaseUnavailable(error)) throw error;
      }
      return false;
    },
  );
};

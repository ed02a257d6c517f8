import type { LiveBatchExport } from '../domain/batch_export.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { activeRunStatuses, type ExistingRun, type RunDefinition } from '../domain/run_state.ts';
import { runDecider } from '../domain/run.ts';
import { progressForRetry } from '../domain/run_continuation.ts';
import type { Connection } from '../journal/database.ts';
import type { JournalTransaction } from '../journal/journal.ts';

/** Returns the id of the interval's active run, or null. An interval has at most one. */
export async function findActiveRun(
  connection: Connection,
  batchExportId: string,
  interval: DataInterval,
): Promise<string | null> {
  const { rows } = await connection.query<{ id: string }>(
    `select id from exportd.batch_export_runs where batch_export_id = $1 and data_interval_start = $2
     and data_interval_end = $3 and status = any($4)`,
    [batchExportId, interval.start, interval.end, activeRunStatuses],
  );
  return rows[0]?.id ?? null;
}

/**
 * Creates a run of an interval with the export's current definition, or with `definition`, which retries of the run keep.
 * The caller holds the export's lock.
 */
export async function createRun(
  transaction: JournalTransaction,
  live: LiveBatchExport,
  run: {
    readonly id: string;
    readonly batch_export_id: string;
    readonly interval: DataInterval;
    readonly backfill_id: string | null;
    readonly retry_number: number;
    readonly allow_shrink: boolean;
    readonly definition?: RunDefinition | undefined;
    /** The failed run that it retries, and whose progress it resumes from if that is safe. */
    readonly retry_of_run_id?: string;
  },
): Promise<void> {
  const failed = await readFailedRun(transaction, run.retry_of_run_id);
  const kept = run.definition ?? (failed?.state.spec.keeps_definition ? failed.state.spec : undefined);
  const { model, config_version } = kept ?? live.definition;
  const progress = failed && progressForRetry(failed.state, { model, config_version });
  const inherited = progress && { run_id: failed.run_id, progress };
  const stream = await transaction.lock(runDecider, run.id);
  await stream.append('created', [
    {
      type: 'RunCreated',
      data: {
        batch_export_id: run.batch_export_id,
        team_id: live.team_id,
        model,
        config_version,
        data_interval_start: run.interval.start,
        data_interval_end: run.interval.end,
        backfill_id: run.backfill_id,
        retry_number: run.retry_number,
        allow_shrink: run.allow_shrink,
        continues_run_id: null,
        ...(kept && { keeps_definition: true }),
        ...(inherited && { inherited }),
      },
    },
  ]);
}

async function readFailedRun(
  transaction: JournalTransaction,
  run_id: string | undefined,
): Promise<{ readonly run_id: string; readonly state: ExistingRun } | undefined> {
  if (run_id === undefined) return undefined;
  const state = (await transaction.lock(runDecider, run_id)).state();
  return state.status === 'Absent' ? undefined : { run_id, state };
}

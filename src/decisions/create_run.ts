import type { LiveBatchExport } from '../domain/batch_export.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { activeRunStatuses, runDecider, type InheritedProgress } from '../domain/run.ts';
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

/** Creates a run of an interval with the export's current definition. The caller holds the export's lock. */
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
    /** The failed run that it retries, and whose progress it resumes from if that is safe. */
    readonly retry_of_run_id?: string;
  },
): Promise<void> {
  const inherited = await findInheritedProgress(transaction, live, run.retry_of_run_id);
  const stream = await transaction.lock(runDecider, run.id);
  await stream.append('created', [
    {
      type: 'RunCreated',
      data: {
        batch_export_id: run.batch_export_id,
        team_id: live.team_id,
        model: live.definition.model,
        config_version: live.definition.config_version,
        data_interval_start: run.interval.start,
        data_interval_end: run.interval.end,
        backfill_id: run.backfill_id,
        retry_number: run.retry_number,
        allow_shrink: run.allow_shrink,
        continues_run_id: null,
        ...(inherited && { inherited }),
      },
    },
  ]);
}

async function findInheritedProgress(
  transaction: JournalTransaction,
  { definition }: LiveBatchExport,
  failedRunId: string | undefined,
): Promise<InheritedProgress | undefined> {
  if (failedRunId === undefined) return undefined;
  const failedRun = await transaction.lock(runDecider, failedRunId);
  const progress = progressForRetry(failedRun.state(), definition);
  return progress && { run_id: failedRunId, progress };
}

import type { BatchExportState } from '../domain/batch_export.ts';
import type { RunStatus } from '../domain/run_state.ts';
import type { Journal } from '../journal/journal.ts';
import { decideNextInterval } from '../domain/next_interval.ts';

/**
 * Whether an interval may be due that the schedule has not decided about yet, for example because it had no free slot.
 * If none is, the schedule sleeps until the next one is due, or until a command, and needs no wake-up when a run completes.
 */
export async function isIntervalDue({ pool }: Journal, batchExportId: string): Promise<boolean> {
  const { rows } = await pool.query<{ state: BatchExportState; now: string }>({
    name: 'is-interval-due',
    text: `select state, clock_timestamp() as now from exportd.stream_states
      where stream_type = 'batch_export' and stream_id = $1`,
    values: [batchExportId],
  });
  const [row] = rows;
  if (!row) return false;
  // Without jitter an interval is due earlier, so no waiting interval is missed.
  const { events, waits_for_slot } = decideNextInterval(row.state, {
    now: new Date(row.now),
    jitterMs: () => 0,
    hasFreeSlot: false,
    runIdOf: () => '',
  });
  return events.length > 0 || waits_for_slot;
}

/** How a run ended, and who may continue. */
interface RunEnd {
  readonly batch_export_id: string;
  readonly status: RunStatus;
  readonly latest_error: string | null;
  /** The rows of its manifest; null if it published none. */
  readonly rows: number | null;
  /** Whether the schedule may create a run now: it waits for a free slot, or a retry is due. */
  readonly wake_schedule: boolean;
  /** The backfill that created it, and those that waited for it. */
  readonly backfill_ids: readonly string[];
}

/** Reads the end of a run; undefined when there is no such run. */
export async function readRunEnd(journal: Journal, runId: string): Promise<RunEnd | undefined> {
  const { rows } = await journal.pool.query<{
    batch_export_id: string;
    status: RunStatus;
    latest_error: string | null;
    rows: number | null;
    has_retries: boolean;
    backfill_id: string | null;
    waiting_backfill_ids: string[];
  }>(
    `select batch_export_id, status, latest_error, backfill_id,
       case when manifest_key is not null then records_completed end as rows,
       exists (select from exportd.batch_export_runs failed
               where failed.batch_export_id = run.batch_export_id and failed.retry_at is not null) as has_retries,
       array(select waiting.backfill_id::text from exportd.backfill_runs waiting
             where waiting.run_id = run.id and waiting.status is null) as waiting_backfill_ids
     from exportd.batch_export_runs run where id = $1`,
    [runId],
  );
  const [run] = rows;
  if (!run) return undefined;
  const { batch_export_id, status, latest_error, rows: published, backfill_id } = run;
  // Usually every due run has started already, and a wake-up costs half as much as a run.
  const mayCreateRun =
    backfill_id === null && (status !== 'Completed' || (await isIntervalDue(journal, batch_export_id)));
  // A backfill does not wait for an automatic retry of its run, but the retry took one of its slots.
  const own = backfill_id === null ? [] : [backfill_id];
  return {
    batch_export_id,
    status,
    latest_error,
    rows: published,
    wake_schedule: mayCreateRun || run.has_retries,
    backfill_ids: [...new Set([...own, ...run.waiting_backfill_ids])],
  };
}

import { activeRunStatuses } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import type { Policies } from './policies.ts';

/** The owner of a slot: a backfill, or the schedule of an export. */
export interface SlotOwner {
  readonly batch_export_id: string;
  readonly backfill_id: string | null;
}

/**
 * The number of free slots of a schedule or a backfill. Automatic retries take a slot, and so do the runs of others that
 * a backfill waits for. The caller holds the export's lock.
 */
export async function countFreeSlots(
  connection: Connection,
  policies: Policies,
  { batch_export_id, backfill_id }: SlotOwner,
): Promise<number> {
  if (backfill_id === null) {
    const { rows } = await connection.query<{ active: number }>(
      `select count(*) as active from exportd.batch_export_runs
       where batch_export_id = $1 and backfill_id is null and status = any($2)`,
      [batch_export_id, activeRunStatuses],
    );
    return policies.maxConcurrentRuns - (rows[0]?.active ?? 0);
  }
  const { rows } = await connection.query<{ active: number }>(
    `select count(*) as active from exportd.batch_export_runs
     where batch_export_id = $1 and status = any($3) and (backfill_id = $2 or id in
       (select run_id from exportd.backfill_runs waiting where waiting.backfill_id = $2 and status is null))`,
    [batch_export_id, backfill_id, activeRunStatuses],
  );
  return policies.backfillConcurrency - (rows[0]?.active ?? 0);
}

/** The number of due automatic retries of a backfill's runs, which take the next free slots. */
export async function countDueRetries(
  connection: Connection,
  backfillId: string,
  now: Date,
): Promise<number> {
  const { rows } = await connection.query<{ due: number }>(
    'select count(*) as due from exportd.batch_export_runs where backfill_id = $1 and retry_at <= $2',
    [backfillId, now],
  );
  return rows[0]?.due ?? 0;
}

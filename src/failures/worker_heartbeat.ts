import type { Pool } from '../journal/database.ts';
import { worker } from './operator_faults.ts';

/** Workers that have not reported for this time are forgotten. */
const forgottenAfter = `interval '1 day'`;

/** The export slots of a worker. */
export interface ReportedSlots {
  use(): { readonly slots: number };
  /** Whether none has been free for some seconds. */
  areTaken(): boolean;
}

/** Stores that this worker runs, and whether it has a free slot. */
export async function storeHeartbeat(pool: Pool, slots: ReportedSlots | undefined): Promise<void> {
  await pool.query(
    `insert into exportd.worker_heartbeats as heartbeat (worker, export_slots, slots_taken_at)
     values ($1, $2, case when $3 then clock_timestamp() end)
     on conflict (worker) do update set seen_at = clock_timestamp(), export_slots = excluded.export_slots,
       slots_taken_at = coalesce(excluded.slots_taken_at, heartbeat.slots_taken_at)`,
    [worker, slots?.use().slots ?? 0, slots?.areTaken() ?? false],
  );
  await pool.query(
    `delete from exportd.worker_heartbeats where seen_at < clock_timestamp() - ${forgottenAfter}
       and worker <> $1`,
    [worker],
  );
}

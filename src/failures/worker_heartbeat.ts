import type { Pool } from '../journal/database.ts';
import { worker } from './operator_faults.ts';

/** Workers that have not reported for this time are forgotten. */
const forgottenAfter = `interval '1 day'`;

/** What a worker has for runs. */
export interface ReportedCapacity {
  /** Its export slots. */
  readonly slots: {
    use(): { readonly slots: number };
    /** Whether none has been free for some seconds. */
    areTaken(): boolean;
  };
  /** The turns of runs that are not counted yet. */
  readonly turns: { areTaken(): boolean };
}

/** Stores that this worker runs, and whether it has a free slot and turn. */
export async function storeHeartbeat(pool: Pool, capacity: ReportedCapacity | undefined): Promise<void> {
  await pool.query(
    `insert into exportd.worker_heartbeats as heartbeat (worker, export_slots, slots_taken_at, turns_taken_at)
     values ($1, $2, case when $3 then clock_timestamp() end, case when $4 then clock_timestamp() end)
     on conflict (worker) do update set seen_at = clock_timestamp(), export_slots = excluded.export_slots,
       slots_taken_at = coalesce(excluded.slots_taken_at, heartbeat.slots_taken_at),
       turns_taken_at = coalesce(excluded.turns_taken_at, heartbeat.turns_taken_at)`,
    [
      worker,
      capacity?.slots.use().slots ?? 0,
      capacity?.slots.areTaken() ?? false,
      capacity?.turns.areTaken() ?? false,
    ],
  );
  await pool.query(
    `delete from exportd.worker_heartbeats where seen_at < clock_timestamp() - ${forgottenAfter}
       and worker <> $1`,
    [worker],
  );
}

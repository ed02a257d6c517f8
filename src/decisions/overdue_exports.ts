import type { LiveBatchExport } from '../domain/batch_export.ts';
import { decideNextInterval } from '../domain/next_interval.ts';
import { activeRunStatuses } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import type { Policies } from './policies.ts';

/**
 * Finds exports whose schedule could have created a run for longer than `toleranceMs` but has not: the execution that
 * should have signalled a free slot was terminated. Takes two statements, regardless of the number of exports.
 */
export async function findOverdueExports(
  pool: Pool,
  policies: Policies,
  toleranceMs: number,
): Promise<ReadonlySet<string>> {
  const [intervals, retries] = await Promise.all([
    exportsWithDueInterval(pool, policies, toleranceMs),
    exportsWithDueRetry(pool, policies, toleranceMs),
  ]);
  return new Set([...intervals, ...retries]);
}

async function exportsWithDueInterval(
  pool: Pool,
  policies: Policies,
  toleranceMs: number,
): Promise<string[]> {
  const { rows } = await pool.query<{ id: string; state: LiveBatchExport; now: string; active: number }>(
    `select export.id, state.state, clock_timestamp() - make_interval(secs => $1::double precision / 1000) as now,
       (select count(*) from exportd.batch_export_runs run where run.batch_export_id = export.id
          and run.backfill_id is null and run.status = any($2)) as active
     from exportd.batch_exports export
     join exportd.stream_states state on state.stream_type = 'batch_export' and state.stream_id = export.id
     where not export.deleted and not export.paused
       and export.scheduled_until < clock_timestamp() - make_interval(secs => $1::double precision / 1000)`,
    [toleranceMs, activeRunStatuses],
  );
  return rows
    .filter(({ id, state, now, active }) => {
      const { events } = decideNextInterval(state, {
        now: new Date(now),
        jitterMs: (interval) => policies.jitterMs(id, state.definition.interval, interval),
        hasFreeSlot: active < policies.maxConcurrentRuns,
        runIdOf: () => '',
      });
      return events.length > 0;
    })
    .map(({ id }) => id);
}

async function exportsWithDueRetry(pool: Pool, policies: Policies, toleranceMs: number): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select distinct failed.batch_export_id as id from exportd.batch_export_runs failed
     join exportd.batch_exports export on export.id = failed.batch_export_id
     left join exportd.backfills backfill on backfill.id = failed.backfill_id
     where not export.deleted and not export.paused
       and failed.retry_at < clock_timestamp() - make_interval(secs => $1::double precision / 1000)
       and coalesce(backfill.status not in ('Paused', 'Cancelled'), true)
       and (select count(*) from exportd.batch_export_runs run where run.batch_export_id = failed.batch_export_id
              and run.backfill_id is not distinct from failed.backfill_id and run.status = any($2))
         < case when failed.backfill_id is null then $3::integer else $4::integer end`,
    [toleranceMs, activeRunStatuses, policies.maxConcurrentRuns, policies.backfillConcurrency],
  );
  return rows.map(({ id }) => id);
}

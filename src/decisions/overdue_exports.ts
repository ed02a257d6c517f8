import type { LiveBatchExport } from '../domain/batch_export.ts';
import { activeRunStatuses } from '../domain/run_state.ts';
import type { Pool } from '../journal/database.ts';
import type { Policies } from './policies.ts';
import { decideNextInterval } from '../domain/next_interval.ts';

/** Exports whose schedule has missed something. */
interface OverdueExports {
  readonly ids: ReadonlySet<string>;
  /** Exports whose state cannot be decided about, for example because a newer version has written it. */
  readonly undecided: readonly { readonly id: string; readonly error: unknown }[];
}

/** Exports per statement. Deciding about so many does not block the process noticeably. */
const pageSize = 500;

interface ScheduleState {
  readonly id: string;
  readonly state: LiveBatchExport;
  readonly now: string;
  readonly active: number;
}

/**
 * Finds exports whose schedule could have created a run for longer than `toleranceMs` but has not: the execution that
 * should have signalled a free slot was terminated.
 */
export async function findOverdueExports(
  pool: Pool,
  policies: Policies,
  toleranceMs: number,
): Promise<OverdueExports> {
  const ids = new Set(await exportsWithDueRetry(pool, policies, toleranceMs));
  const undecided: { id: string; error: unknown }[] = [];
  for (let after: string | undefined; ;) {
    const page = await readScheduleStates(pool, toleranceMs, after);
    for (const row of page)
      try {
        if (hasDueInterval(row, policies)) ids.add(row.id);
      } catch (error) {
        undecided.push({ id: row.id, error });
      }
    after = page.at(-1)?.id;
    if (page.length < pageSize || after === undefined) return { ids, undecided };
  }
}

/** Reads a page of the states of unpaused exports, as of `toleranceMs` ago, ordered by id. */
async function readScheduleStates(
  pool: Pool,
  toleranceMs: number,
  after: string | undefined,
): Promise<ScheduleState[]> {
  const { rows } = await pool.query<ScheduleState>(
    `select export.id, state.state, clock_timestamp() - make_interval(secs => $1::double precision / 1000) as now,
       (select count(*) from exportd.batch_export_runs run where run.batch_export_id = export.id
          and run.backfill_id is null and run.status = any($2)) as active
     from exportd.batch_exports export
     join exportd.stream_states state on state.stream_type = 'batch_export' and state.stream_id = export.id
     where not export.deleted and not export.paused and ($3::uuid is null or export.id > $3)
       and export.scheduled_until < clock_timestamp() - make_interval(secs => $1::double precision / 1000)
       -- Outside these bounds a schedule sleeps.
       and (export.start_at is null or export.start_at < clock_timestamp())
       and (export.end_at is null or export.end_at > export.scheduled_until)
     order by export.id limit $4`,
    [toleranceMs, activeRunStatuses, after, pageSize],
  );
  return rows;
}

function hasDueInterval({ id, state, now, active }: ScheduleState, policies: Policies): boolean {
  const { events } = decideNextInterval(state, {
    now: new Date(now),
    jitterMs: (interval) => policies.jitterMs(id, state.definition.interval, interval),
    hasFreeSlot: active < policies.maxConcurrentRuns,
    runIdOf: () => '',
  });
  return events.length > 0;
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

import { type BackfillEvent, type BackfillPlan, plannedRuns } from '../domain/backfill.ts';
import type { Connection } from '../journal/database.ts';
import type { StoredEvent } from '../journal/journal.ts';
import { type FoldedEvent, type Projection } from './projection.ts';
import { digestOf } from './batch_exports.ts';
import { byKey, type CachedTable, type RowCache, type WantedRows } from './row_cache.ts';
import { runsTable } from './runs.ts';

/** SQL condition: the run of a row of backfill_runs is not yet counted in the backfill's row. */
export const isUncounted = (row = 'backfill_runs'): string =>
  `(${row}.status is null or ${row}.status in ('FailedRetryable', 'TimedOut'))`;

const backfillsTable: CachedTable = { name: 'exportd.backfills', key: ['id'], lookups: {} };
const backfillRunsTable: CachedTable = {
  name: 'exportd.backfill_runs',
  key: ['backfill_id', 'run_id'],
  lookups: {},
};

/** The statuses with which a run is counted. */
const finalStatuses = ['Completed', 'Failed', 'Terminated', 'Cancelled'];
const isFinal = `$3 in (${finalStatuses.map((status) => `'${status}'`).join(', ')})`;

/**
 * One row per backfill, and one per run that it created or waits for. A run with a final status is counted in the
 * backfill's row when its end is recorded. To report progress, readers therefore join only the other runs: the active
 * ones and those with a pending automatic retry. Counted runs of its own need no row any more. Those that it waited for keep
 * theirs, so that they are not collapsed before it: a rebuild counts them again.
 */
export const backfillsProjection: Projection = {
  name: 'backfills',
  version: 8,
  reads: ['runs'],
  owns: ['exportd.backfill_runs', 'exportd.backfills'],
  tables: `
    create table exportd.backfills (
      id uuid primary key,
      position bigint not null unique,
      batch_export_id uuid not null,
      team_id integer not null,
      start_at timestamptz not null,
      end_at timestamptz not null,
      status text not null,
      total_runs integer not null,
      -- Counts of the runs whose final end is recorded.
      completed_runs integer not null default 0,
      failed_runs integer not null default 0,
      cancelled_runs integer not null default 0,
      records_completed bigint not null default 0,
      records_total_count bigint not null default 0,
      -- That of its plan: range, retry, failed or repair. The range and the number of runs of a repair grow with its runs.
      kind text not null,
      -- The run that a retry retries.
      retry_of_run_id uuid,
      allow_shrink boolean not null,
      created_at timestamptz not null,
      finished_at timestamptz,
      last_updated_at timestamptz not null
    );
    create index backfills_newest on exportd.backfills (batch_export_id, position desc);
    create index backfills_active on exportd.backfills (team_id) where finished_at is null;
    create unique index backfills_one_repair on exportd.backfills (batch_export_id)
      where kind = 'repair' and finished_at is null;
    create table exportd.backfill_runs (
      backfill_id uuid not null references exportd.backfills,
      run_id uuid not null,
      own boolean not null,
      status text,
      primary key (backfill_id, run_id)
    );
    -- The runs that are not counted in the backfill's row.
    create index backfill_runs_open on exportd.backfill_runs (backfill_id) where ${isUncounted()};
    -- The backfills that wait for a run, or for a retry of it, or that have counted it.
    create index backfill_runs_run on exportd.backfill_runs (run_id)`,
  apply: async (connection, event) => {
    if (event.stream_type === 'backfill') await fold(connection, event);
    const digest = digestOf(event);
    if (digest && digest.backfill_ids.length > 0)
      for (const [table, id] of [
        ['backfill_runs', 'backfill_id'],
        ['backfills', 'id'],
      ] as const)
        await connection.query(`delete from exportd.${table} where ${id} = any($1)`, [digest.backfill_ids]);
  },
  batch: {
    tables: [backfillsTable, backfillRunsTable],
    wants: ({ stored }) => {
      if (stored.stream_type !== 'backfill') return [];
      const { stream_id: id, stream_version } = stored;
      const event = stored as unknown as BackfillEvent;
      const backfill: WantedRows = {
        table: backfillsTable,
        lookup: byKey,
        values: [id],
        isNew: stream_version === 1,
      };
      if (!('run_id' in event.data)) return [backfill];
      const { run_id } = event.data;
      return [
        backfill,
        { table: backfillRunsTable, lookup: byKey, values: [id, run_id] },
        ...(event.type === 'BackfillRunEnded' ? [{ table: runsTable, lookup: byKey, values: [run_id] }] : []),
      ];
    },
    fold: foldRow,
  },
};

/** The statuses that an event of a backfill sets. */
const statuses: Partial<Record<BackfillEvent['type'], { readonly status: string; readonly ends: boolean }>> =
  {
    BackfillPaused: { status: 'Paused', ends: false },
    BackfillUnpaused: { status: 'Running', ends: false },
    BackfillCancelled: { status: 'Cancelled', ends: true },
    BackfillCompleted: { status: 'Completed', ends: true },
  };

const retriedRun = (plan: BackfillPlan): string | null => (plan.kind === 'retry' ? plan.run_id : null);

/** The fold of a rebuild. */
async function foldRow(rows: RowCache, { stored }: FoldedEvent): Promise<boolean> {
  if (stored.stream_type !== 'backfill') return true;
  const { stream_id: id, recorded_at } = stored;
  const event = stored as unknown as BackfillEvent;
  const backfill = await rows.get(backfillsTable, id);
  const counts = backfill as unknown as CountedBackfill | undefined;
  const status = statuses[event.type];
  if (status && backfill)
    rows.change(backfillsTable, backfill, {
      status: status.status,
      last_updated_at: recorded_at,
      finished_at: status.ends ? recorded_at : null,
    });
  switch (event.type) {
    case 'BackfillStarted': {
      const { batch_export_id, team_id, start_at, end_at, allow_shrink, plan } = event.data;
      rows.set(backfillsTable, {
        id,
        position: stored.global_position,
        batch_export_id,
        team_id,
        start_at,
        end_at,
        status: 'Running',
        total_runs: plannedRuns(plan),
        completed_runs: 0,
        failed_runs: 0,
        cancelled_runs: 0,
        records_completed: 0,
        records_total_count: 0,
        kind: plan.kind,
        retry_of_run_id: retriedRun(plan),
        allow_shrink,
        created_at: recorded_at,
        finished_at: null,
        last_updated_at: recorded_at,
      });
      return true;
    }
    case 'BackfillRunCreated': {
      const { run_id, own, start, end } = event.data;
      if (!(await rows.get(backfillRunsTable, id, run_id)))
        rows.set(backfillRunsTable, { backfill_id: id, run_id, own, status: null });
      if (backfill?.kind === 'repair' && counts)
        rows.change(backfillsTable, backfill, {
          total_runs: counts.total_runs + 1,
          start_at: Date.parse(start) < Date.parse(counts.start_at) ? start : counts.start_at,
          end_at: Date.parse(end) > Date.parse(counts.end_at) ? end : counts.end_at,
        });
      return true;
    }
    case 'BackfillRunEnded': {
      const { run_id, status: ended } = event.data;
      const row = await rows.get(backfillRunsTable, id, run_id);
      if (!row) return true;
      const run = (await rows.get(runsTable, run_id)) as unknown as EndedRun | undefined;
      const isCounted = finalStatuses.includes(ended);
      if (isCounted && run?.backfill_id === id) rows.delete(backfillRunsTable, row);
      else rows.change(backfillRunsTable, row, { status: ended });
      if (!run || !backfill || !counts || !isCounted) return true;
      const isFailed = run.status === 'Failed' || run.status === 'Terminated';
      rows.change(backfillsTable, backfill, {
        completed_runs: counts.completed_runs + (run.status === 'Completed' ? 1 : 0),
        failed_runs: counts.failed_runs + (isFailed ? 1 : 0),
        cancelled_runs: counts.cancelled_runs + (run.status === 'Cancelled' ? 1 : 0),
        records_completed: counts.records_completed + run.records_completed,
        records_total_count: counts.records_total_count + (run.records_total_count ?? 0),
      });
      return true;
    }
    case 'BackfillRunContinued': {
      const row = await rows.get(backfillRunsTable, id, event.data.run_id);
      if (row) rows.change(backfillRunsTable, row, { run_id: event.data.next_run_id });
      return true;
    }
    default:
      return status !== undefined;
  }
}

/** What a row of `backfillsTable` counts. */
interface CountedBackfill {
  readonly start_at: string;
  readonly end_at: string;
  readonly total_runs: number;
  readonly completed_runs: number;
  readonly failed_runs: number;
  readonly cancelled_runs: number;
  readonly records_completed: number;
  readonly records_total_count: number;
}

/** What a backfill counts of a row of `runsTable`. */
interface EndedRun {
  readonly backfill_id: string | null;
  readonly status: string;
  readonly records_completed: number;
  readonly records_total_count: number | null;
}

async function fold(connection: Connection, stored: StoredEvent): Promise<void> {
  const id = stored.stream_id;
  const at = stored.recorded_at;
  const event = stored as unknown as BackfillEvent;
  const status = statuses[event.type];
  if (status)
    await connection.query(
      `update exportd.backfills set status = $2, last_updated_at = $3,
         finished_at = case when $4 then $3::timestamptz end where id = $1`,
      [id, status.status, at, status.ends],
    );
  switch (event.type) {
    case 'BackfillStarted': {
      const spec = event.data;
      await connection.query(
        `insert into exportd.backfills (id, position, batch_export_id, team_id, start_at, end_at, status, total_runs,
           retry_of_run_id, created_at, last_updated_at, allow_shrink, kind)
         values ($1, $2, $3, $4, $5, $6, 'Running', $7, $8, $9, $9, $10, $11)`,
        [
          id,
          stored.global_position,
          spec.batch_export_id,
          spec.team_id,
          spec.start_at,
          spec.end_at,
          plannedRuns(spec.plan),
          retriedRun(spec.plan),
          at,
          spec.allow_shrink,
          spec.plan.kind,
        ],
      );
      return;
    }
    case 'BackfillRunCreated':
      await connection.query(
        'insert into exportd.backfill_runs (backfill_id, run_id, own) values ($1, $2, $3) on conflict do nothing',
        [id, event.data.run_id, event.data.own],
      );
      await connection.query(
        `update exportd.backfills set total_runs = total_runs + 1, start_at = least(start_at, $2),
           end_at = greatest(end_at, $3) where id = $1 and kind = 'repair'`,
        [id, event.data.start, event.data.end],
      );
      return;
    case 'BackfillRunEnded':
      await connection.query(
        `with counted as (
           delete from exportd.backfill_runs waiting using exportd.batch_export_runs run
           where waiting.backfill_id = $1 and waiting.run_id = $2 and run.id = $2 and run.backfill_id = $1 and ${isFinal}
           returning waiting.run_id
         ), kept as (
           update exportd.backfill_runs set status = $3
           where backfill_id = $1 and run_id = $2 and not exists (select from counted) returning run_id)
         update exportd.backfills backfill set
           completed_runs = completed_runs + (run.status = 'Completed')::int,
           failed_runs = failed_runs + (run.status in ('Failed', 'Terminated'))::int,
           cancelled_runs = cancelled_runs + (run.status = 'Cancelled')::int,
           records_completed = backfill.records_completed + run.records_completed,
           records_total_count = backfill.records_total_count + coalesce(run.records_total_count, 0)
         from (table counted union all table kept) ended join exportd.batch_export_runs run on run.id = ended.run_id
         where backfill.id = $1 and ${isFinal}`,
        [id, event.data.run_id, event.data.status],
      );
      return;
    case 'BackfillRunContinued':
      await connection.query(
        'update exportd.backfill_runs set run_id = $3 where backfill_id = $1 and run_id = $2',
        [id, event.data.run_id, event.data.next_run_id],
      );
      return;
    case 'BackfillPaused':
    case 'BackfillUnpaused':
    case 'BackfillCancelled':
    case 'BackfillCompleted':
      return;
  }
}

import { type BackfillEvent, type BackfillPlan, plannedRuns } from '../domain/backfill.ts';
import type { RunStatus } from '../domain/run_state.ts';
import type { StoredStreamEvent } from '../journal/journal.ts';
import { type Projection } from './projection.ts';
import { byKey, type CachedTable, type RowCache, type WantedRows } from './row_cache.ts';
import { type RunRow, runsTable } from './runs.ts';

/** SQL condition: the run of a row of backfill_runs is not yet counted in the backfill's row. */
export const isUncounted = (row = 'backfill_runs'): string =>
  `(${row}.status is null or ${row}.status in ('FailedRetryable', 'TimedOut'))`;

interface BackfillRow {
  readonly id: string;
  readonly position: number;
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly start_at: string;
  readonly end_at: string;
  readonly status: string;
  readonly total_runs: number;
  readonly completed_runs: number;
  readonly unchanged_runs: number;
  readonly failed_runs: number;
  readonly cancelled_runs: number;
  readonly records_completed: number;
  readonly records_total_count: number;
  readonly retry_of_run_id: string | null;
  readonly kind: BackfillPlan['kind'];
  readonly allow_shrink: boolean;
  readonly only_missing: boolean;
  readonly rewrites: boolean;
  readonly created_at: string;
  readonly finished_at: string | null;
  readonly last_updated_at: string;
}

interface BackfillRunRow {
  readonly backfill_id: string;
  readonly run_id: string;
  readonly own: boolean;
  readonly status: RunStatus | null;
}

const backfillsTable: CachedTable<BackfillRow> = { name: 'exportd.backfills', key: ['id'], lookups: {} };
const backfillRunsTable: CachedTable<BackfillRunRow> = {
  name: 'exportd.backfill_runs',
  key: ['backfill_id', 'run_id'],
  lookups: { backfill: { columns: ['backfill_id'] } },
};

/** Whether a run completed without publishing. */
const isUnchanged = ({ status, manifest_key }: Pick<RunRow, 'status' | 'manifest_key'>): boolean =>
  status === 'Completed' && manifest_key === null;

/** The statuses with which a run is counted. */
const finalStatuses: ReadonlySet<RunStatus> = new Set(['Completed', 'Failed', 'Terminated', 'Cancelled']);

/**
 * One row per backfill, and one per run that it created or waits for. A run with a final status is counted in the
 * backfill's row when its end is recorded. To report progress, readers therefore join only the other runs: the active
 * ones and those with a pending automatic retry. Counted runs of its own need no row any more. Those that it waited for keep
 * theirs, so that they are not collapsed before it: a rebuild counts them again.
 */
export const backfillsProjection: Projection = {
  name: 'backfills',
  version: 9,
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
      -- Those of them that published nothing.
      unchanged_runs integer not null default 0,
      failed_runs integer not null default 0,
      cancelled_runs integer not null default 0,
      records_completed bigint not null default 0,
      records_total_count bigint not null default 0,
      -- That of its plan: range, retry, failed or repair. The range and the number of runs of a repair grow with its runs.
      kind text not null,
      -- The run that a retry retries.
      retry_of_run_id uuid,
      allow_shrink boolean not null,
      -- Whether it exports only what nothing had exported, and whether it also writes what is unchanged.
      only_missing boolean not null,
      rewrites boolean not null,
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
  cached: [backfillsTable, backfillRunsTable],
  wants: ({ stream_type, stored }) => {
    if (stream_type !== 'backfill') return [];
    const { stream_id: id, stream_version } = stored;
    const isNew = stream_version === 1;
    const backfill: WantedRows = { table: backfillsTable, lookup: byKey, values: [id], isNew };
    if (stored.type in statuses) return [{ ...backfill, isAssigned: true }];
    if (!('run_id' in stored.data)) return [backfill];
    const { run_id } = stored.data;
    return [
      backfill,
      { table: backfillRunsTable, lookup: byKey, values: [id, run_id] },
      ...(stored.type === 'BackfillRunEnded'
        ? [{ table: runsTable, lookup: byKey, values: [run_id], isOnlyRead: true }]
        : []),
    ];
  },
  fold: (rows, { stream_type, stored }) => {
    if (stream_type === 'backfill') foldBackfill(rows, stored);
    if (stream_type !== 'batch_export' || stored.type !== 'HistoryCollapsed') return;
    rows.deleteAll(backfillRunsTable, 'backfill', stored.data.backfill_ids);
    rows.deleteAll(backfillsTable, byKey, stored.data.backfill_ids);
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

function foldBackfill(rows: RowCache, stored: StoredStreamEvent<'backfill'>): void {
  const { stream_id: id, recorded_at } = stored;
  const status = statuses[stored.type];
  if (status) {
    const finished_at = status.ends ? recorded_at : null;
    rows.assign(backfillsTable, [id], { status: status.status, last_updated_at: recorded_at, finished_at });
    return;
  }
  const backfill = rows.get(backfillsTable, id);
  switch (stored.type) {
    case 'BackfillStarted': {
      const { batch_export_id, team_id, start_at, end_at, allow_shrink, plan } = stored.data;
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
        unchanged_runs: 0,
        failed_runs: 0,
        cancelled_runs: 0,
        records_completed: 0,
        records_total_count: 0,
        kind: plan.kind,
        retry_of_run_id: plan.kind === 'retry' ? plan.run_id : null,
        allow_shrink,
        only_missing: plan.kind === 'range' && plan.parts !== undefined,
        rewrites: plan.kind === 'range' && plan.rewrites === true,
        created_at: recorded_at,
        finished_at: null,
        last_updated_at: recorded_at,
      });
      return;
    }
    case 'BackfillRunCreated': {
      const { run_id, own, start, end } = stored.data;
      if (!rows.get(backfillRunsTable, id, run_id))
        rows.set(backfillRunsTable, { backfill_id: id, run_id, own, status: null });
      if (backfill?.kind === 'repair')
        rows.change(backfillsTable, backfill, {
          total_runs: backfill.total_runs + 1,
          start_at: Date.parse(start) < Date.parse(backfill.start_at) ? start : backfill.start_at,
          end_at: Date.parse(end) > Date.parse(backfill.end_at) ? end : backfill.end_at,
        });
      return;
    }
    case 'BackfillRunEnded': {
      const { run_id, status: ended } = stored.data;
      const row = rows.get(backfillRunsTable, id, run_id);
      if (!row) return;
      const run = rows.get(runsTable, run_id);
      const isCounted = finalStatuses.has(ended);
      if (isCounted && run?.backfill_id === id) rows.delete(backfillRunsTable, row);
      else rows.change(backfillRunsTable, row, { status: ended });
      if (!run || !backfill || !isCounted) return;
      const isFailed = run.status === 'Failed' || run.status === 'Terminated';
      rows.change(backfillsTable, backfill, {
        completed_runs: backfill.completed_runs + (run.status === 'Completed' ? 1 : 0),
        unchanged_runs: backfill.unchanged_runs + (isUnchanged(run) ? 1 : 0),
        failed_runs: backfill.failed_runs + (isFailed ? 1 : 0),
        cancelled_runs: backfill.cancelled_runs + (run.status === 'Cancelled' ? 1 : 0),
        records_completed: backfill.records_completed + run.records_completed,
        records_total_count: backfill.records_total_count + (run.records_total_count ?? 0),
      });
      return;
    }
    case 'BackfillRunContinued': {
      const row = rows.get(backfillRunsTable, id, stored.data.run_id);
      if (row) rows.change(backfillRunsTable, row, { run_id: stored.data.next_run_id });
      return;
    }
    case 'BackfillPaused':
    case 'BackfillUnpaused':
    case 'BackfillCancelled':
    case 'BackfillCompleted':
      return;
  }
}

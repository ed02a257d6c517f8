import { createHash } from 'node:crypto';
import type { DataInterval } from '../domain/intervals.ts';
import { untouchedRun } from '../domain/run.ts';
import {
  activeRunStatuses,
  backfillOf,
  type RunProgress,
  type RunSpec,
  type RunStatus,
} from '../domain/run_state.ts';
import type { FoldedEvent, StoredStreamEvent } from '../journal/journal.ts';
import { existingRun, type Projection } from './projection.ts';
import { byKey, type CachedTable, type RowCache, type WantedRows } from './row_cache.ts';
import type { RunEvent, RunEventData } from '../domain/run_events.ts';

/** SQL condition: the run failed, and is not held until a person decides. */
export const isFailedRun = (run = 'batch_export_runs'): string =>
  `(${run}.status in ('Failed', 'FailedRetryable', 'TimedOut') and not ${run}.held)`;

/**
 * The cursor, opaque to users: a hash of the last exported key of each range, since a key may identify a person. Null before
 * the first part.
 */
function cursorOf({ generation, ranges }: Pick<RunProgress, 'generation' | 'ranges'>): string | null {
  const reached = ranges.flatMap(({ upload, files }, range) => {
    const last = upload?.parts.findLast((part) => part.last !== null)?.last ?? files.last;
    return last === null
      ? []
      : [[range, last.inserted_at, last.id, last.within?.row_hash, last.within?.copies]];
  });
  if (reached.length === 0) return null;
  return createHash('sha256')
    .update(JSON.stringify([generation, reached]))
    .digest('base64url')
    .slice(0, 22);
}

/** What a run shows of what it has written. */
const writtenColumns = (run: RunProgress) => ({
  cursor: cursorOf(run),
  files: run.ranges.reduce((count, { files }) => count + files.count, 0),
  records_completed: run.most_written.rows,
  bytes: run.most_written.bytes,
});

/** SQL: the active statuses as literals, so that PostgreSQL uses the index of active runs. */
export const activeStatuses = activeRunStatuses.map((status) => `'${status}'`).join(', ');

/**
 * SQL condition: the run has counted its rows and waits for a slot of a worker. It fails nothing meanwhile, but may wait for its
 * destination or the operator.
 */
export const waitsForSlot = (run: string): string =>
  `(${run}.status = 'Starting' and ${run}.records_total_count > 0 and ${run}.latest_error is null)`;

/**
 * SQL condition: the run has not counted its rows. It waits for its turn in a worker, or for what may still commit rows, which is
 * limited by the length of its interval.
 */
export const waitsForTurn = (run: string): string =>
  `(${run}.status = 'Starting' and ${run}.records_total_count is null and ${run}.latest_error is null)`;

/** A run as `runsProjection` stores it. */
export interface RunRow extends Omit<RunSpec, 'continues_run_id' | 'purpose'> {
  readonly id: string;
  readonly position: number;
  readonly backfill_id: string | null;
  readonly status: RunStatus;
  readonly records_completed: number;
  readonly records_total_count: number | null;
  readonly latest_error: string | null;
  readonly cursor: string | null;
  readonly created_at: string;
  readonly finished_at: string | null;
  readonly last_updated_at: string;
  readonly bytes: number;
  readonly files: number;
  readonly generation: number;
  readonly manifest_key: string | null;
  readonly adopted_generation: number | null;
  readonly is_scheduled: boolean;
  readonly adopted_by_schedule: boolean;
  readonly held: boolean;
  readonly cancel_requested: boolean;
  readonly retry_at: string | null;
  readonly in_outage: boolean;
}

/** The table of `runsProjection`, for projections that read it. */
export const runsTable: CachedTable<RunRow> = {
  name: 'exportd.batch_export_runs',
  key: ['id'],
  lookups: { interval: { columns: ['batch_export_id', 'data_interval_start', 'data_interval_end'] } },
};

/** One row per run for the HTTP API. */
export const runsProjection: Projection = {
  name: 'runs',
  version: 23,
  reads: ['stream_states'],
  owns: ['exportd.batch_export_runs'],
  tables: `
    create table exportd.batch_export_runs (
      id uuid primary key,
      -- Journal position of the run's first event, to sort runs by age without ties.
      position bigint not null unique,
      batch_export_id uuid not null,
      team_id integer not null,
      model text not null,
      config_version integer not null,
      status text not null,
      records_completed bigint not null default 0,
      records_total_count bigint,
      -- How it failed. While it is active: the error that it is retried after, until it makes progress.
      latest_error text,
      data_interval_start timestamptz not null,
      data_interval_end timestamptz not null,
      cursor text,
      created_at timestamptz not null,
      finished_at timestamptz,
      last_updated_at timestamptz not null,
      bytes bigint not null default 0,
      files integer not null default 0,
      generation integer not null default 0,
      -- Null of a Completed run that found its interval unchanged.
      manifest_key text,
      -- The generation of a manifest that the run found in the bucket and the journal did not know.
      adopted_generation integer,
      backfill_id uuid,
      -- Whether the interval belongs to the schedule: it created a run of it, or adopted a backfill's.
      is_scheduled boolean not null,
      -- Whether it is a backfill's run that the schedule adopted when the interval was due, or a retry of one.
      adopted_by_schedule boolean not null,
      retry_number integer not null default 0,
      allow_shrink boolean not null,
      -- Whether it Failed because the source lacks rows of the current manifest, which stays.
      held boolean not null default false,
      -- Whether it is to be cancelled once its bucket shows that it has not published.
      cancel_requested boolean not null default false,
      -- When the automatic retry is due; null if there is none or a later run of the interval exists.
      retry_at timestamptz,
      -- Whether its destination did not respond in its time, so that its retry does not count.
      in_outage boolean not null default false
    );
    create unique index batch_export_runs_one_active on exportd.batch_export_runs
      (batch_export_id, data_interval_start, data_interval_end) where status in (${activeStatuses});
    create index batch_export_runs_newest on exportd.batch_export_runs (batch_export_id, position desc);
    create index batch_export_runs_interval on exportd.batch_export_runs (batch_export_id, data_interval_start, position);
    -- The status of the latest runs, which every step of a schedule and of a backfill reads.
    create index batch_export_runs_scheduled_ends on exportd.batch_export_runs
      (batch_export_id, finished_at desc, position desc)
      where backfill_id is null and status in ('Completed', 'Failed') and not held;
    create index batch_export_runs_backfill_ends on exportd.batch_export_runs
      (backfill_id, finished_at desc, position desc)
      where backfill_id is not null and status in ('Completed', 'Failed') and not held;
    -- Those of the schedule by the age of their interval, of which the older ones of a project get the slots of workers first.
    create index batch_export_runs_starting on exportd.batch_export_runs (team_id, data_interval_end)
      where status = 'Starting' and backfill_id is null;
    -- What people retry after an outage.
    create index batch_export_runs_failed on exportd.batch_export_runs (batch_export_id, data_interval_start)
      where ${isFailedRun()};
    create index batch_export_runs_backfill on exportd.batch_export_runs (backfill_id) where backfill_id is not null;
    create index batch_export_runs_retry on exportd.batch_export_runs (batch_export_id, retry_at) where retry_at is not null`,
  cached: [runsTable],
  wants: ({ stream_type, stored }) => {
    if (stream_type === 'batch_export')
      return stored.type === 'IntervalScheduled'
        ? [
            intervalOf(stored.stream_id, stored.data),
            { table: runsTable, lookup: byKey, values: [stored.data.run_id] },
          ]
        : [];
    if (stream_type !== 'run' || effects[stored.type] === 'nothing') return [];
    const run: WantedRows = { table: runsTable, lookup: byKey, values: [stored.stream_id] };
    // The row of its interval is locked too when a run ends. The schedule, which adopts runs, locks them in the same order.
    if (stored.type !== 'RunCreated') return [{ ...run, isAssigned: effects[stored.type] !== 'ends' }];
    const { batch_export_id, data_interval_start: start, data_interval_end: end } = stored.data;
    return [{ ...run, isNew: true }, intervalOf(batch_export_id, { start, end })];
  },
  fold: (rows, event) => {
    if (event.stream_type === 'run') foldRun(rows, event);
    if (event.stream_type !== 'batch_export') return;
    const { stored } = event;
    if (stored.type === 'IntervalScheduled') markScheduled(rows, stored.stream_id, stored.data);
    if (stored.type === 'HistoryCollapsed') rows.deleteAll(runsTable, byKey, stored.data.run_ids);
  },
};

/** What an event does to the row of its run. */
const effects: Readonly<Record<RunEvent['type'], 'creates' | 'sets' | 'ends' | 'nothing'>> = {
  RunCreated: 'creates',
  RunCounted: 'sets',
  RunReplacementChecked: 'sets',
  RunExportStarted: 'sets',
  RunAttemptStarted: 'nothing',
  RunAttemptFailed: 'sets',
  RunGenerationReserved: 'sets',
  RunKeyTaken: 'nothing',
  RunUploadCreated: 'sets',
  RunUploadResumed: 'sets',
  RunPartPlanned: 'sets',
  RunFileCompleted: 'sets',
  RunRangeFinished: 'nothing',
  RunRejectedFilePlanned: 'nothing',
  RunExportFinished: 'sets',
  RunManifestAdopted: 'sets',
  RunPublishStarted: 'nothing',
  RunPublishResumed: 'nothing',
  RunPublishWithdrawn: 'nothing',
  RunTargetPlanned: 'nothing',
  RunTargetCommitted: 'nothing',
  RunCompleted: 'ends',
  RunUnchanged: 'ends',
  RunFailed: 'ends',
  RunFailedRetryable: 'ends',
  RunTimedOut: 'ends',
  RunTerminated: 'ends',
  RunCancelRequested: 'sets',
  RunCancelled: 'ends',
  RunRetryCancelled: 'ends',
  RunContinuedAsNew: 'sets',
  RunBarrierAdvanced: 'nothing',
  RunSettled: 'nothing',
  RunObjectDeleted: 'nothing',
  RunObjectDeletionFailed: 'nothing',
  IntervalCompared: 'nothing',
};

const intervalOf = (batchExportId: string, { start, end }: DataInterval): WantedRows => ({
  table: runsTable,
  lookup: 'interval',
  values: [batchExportId, start, end],
});

/** Marks the interval's runs as scheduled, and those of a backfill as adopted. */
function markScheduled(
  rows: RowCache,
  batchExportId: string,
  { start, end, run_id }: DataInterval & { readonly run_id: string },
): void {
  const adopted = rows.get(runsTable, run_id);
  for (const run of rows.find(runsTable, 'interval', batchExportId, start, end)) {
    const isAdopted = run.backfill_id !== null && run.backfill_id === adopted?.backfill_id;
    const adopted_by_schedule = run.adopted_by_schedule || isAdopted;
    rows.change(runsTable, run, { is_scheduled: true, adopted_by_schedule });
  }
}

/** A new generation, of which nothing is exported. */
const inGeneration = (generation: number) => ({ generation, files: 0, cursor: null });

/** What an event sets in the row of its run, beside `last_updated_at`; undefined if it sets nothing. */
function changesOf({ stored: event, before, state }: FoldedEvent<'run'>): Partial<RunRow> | undefined {
  const { recorded_at: at } = event;
  const ended = (status: RunStatus, error: string | null) => ({
    status,
    finished_at: at,
    ...(error !== null && { latest_error: error }),
  });
  switch (event.type) {
    case 'RunCounted':
      return { records_total_count: event.data.records_total_count, latest_error: null };
    case 'RunExportStarted': {
      const { generation } = event.data;
      return { status: 'Running', ...(generation !== undefined && inGeneration(generation)) };
    }
    case 'RunGenerationReserved':
      return inGeneration(event.data.generation);
    case 'RunManifestAdopted':
      return { adopted_generation: event.data.generation, generation: event.data.raised_to };
    case 'RunAttemptFailed':
      return { latest_error: event.data.latest_error };
    case 'RunReplacementChecked': {
      const { base } = event.data;
      return { latest_error: null, ...(base && { records_total_count: base.late_rows }) };
    }
    case 'RunCompleted':
      return {
        ...ended('Completed', null),
        manifest_key: event.data.manifest_key,
        latest_error: null,
      };
    case 'RunUnchanged':
      return { status: 'Completed', finished_at: at, latest_error: null };
    case 'RunFailed':
      return { ...ended('Failed', event.data.latest_error), ...(event.data.held && { held: true }) };
    case 'RunTerminated':
      return ended('Terminated', event.data.latest_error);
    case 'RunCancelRequested':
      return { cancel_requested: true };
    case 'RunCancelled':
      return ended('Cancelled', event.data.reason);
    case 'RunFailedRetryable':
    case 'RunTimedOut': {
      const { latest_error, retry_delay_seconds, in_outage } = event.data;
      const status = event.type === 'RunTimedOut' ? 'TimedOut' : 'FailedRetryable';
      const retry_at = retry_delay_seconds === null ? null : secondsAfter(at, retry_delay_seconds);
      return { ...ended(status, latest_error), retry_at, in_outage: in_outage === true };
    }
    case 'RunRetryCancelled':
      return { retry_at: null };
    case 'RunContinuedAsNew':
      return { ...ended('ContinuedAsNew', null), cursor: event.data.cursor, latest_error: null };
    case 'RunExportFinished':
    case 'RunFileCompleted':
      return { ...writtenColumns(existingRun(state)), latest_error: null };
    case 'RunUploadCreated':
    case 'RunUploadResumed':
    case 'RunPartPlanned': {
      const run = existingRun(state);
      const isProgress = run.most_written.rows > existingRun(before).most_written.rows;
      return { ...writtenColumns(run), ...(isProgress && { latest_error: null }) };
    }
    case 'RunCreated':
    case 'RunAttemptStarted':
    case 'RunKeyTaken':
    case 'RunRangeFinished':
    case 'RunRejectedFilePlanned':
    case 'RunPublishStarted':
    case 'RunPublishResumed':
    case 'RunPublishWithdrawn':
    case 'RunTargetPlanned':
    case 'RunTargetCommitted':
    case 'RunObjectDeleted':
    case 'RunObjectDeletionFailed':
    case 'RunBarrierAdvanced':
    case 'RunSettled':
    case 'IntervalCompared':
      return undefined;
  }
}

/** A time some seconds after another, to the microsecond as PostgreSQL has it. */
function secondsAfter(at: string, seconds: number): string {
  const micros = Math.round(seconds * 1e6);
  const milliseconds = new Date(Date.parse(at) + Math.floor(micros / 1_000)).toISOString();
  return milliseconds.replace('Z', `${String(micros % 1_000).padStart(3, '0')}Z`);
}

function foldRun(rows: RowCache, event: FoldedEvent<'run'>): void {
  const { stored } = event;
  if (stored.type === 'RunCreated') {
    insertRow(rows, stored, stored.data);
    return;
  }
  const changes = changesOf(event);
  if (changes)
    rows.assign(runsTable, [stored.stream_id], { last_updated_at: stored.recorded_at, ...changes });
}

/** Inserts the row of a new run. No earlier run of its interval is retried any more. */
function insertRow(
  rows: RowCache,
  { stream_id, global_position, recorded_at }: StoredStreamEvent<'run'>,
  spec: RunEventData<'RunCreated'>,
): void {
  const { batch_export_id, data_interval_start, data_interval_end, inherited } = spec;
  const backfill_id = backfillOf(spec);
  const former = rows.find(runsTable, 'interval', batch_export_id, data_interval_start, data_interval_end);
  for (const run of former) if (run.retry_at !== null) rows.change(runsTable, run, { retry_at: null });
  rows.set(runsTable, {
    id: stream_id,
    position: global_position,
    batch_export_id,
    team_id: spec.team_id,
    model: spec.model,
    config_version: spec.config_version,
    status: 'Starting',
    latest_error: null,
    data_interval_start,
    data_interval_end,
    created_at: recorded_at,
    finished_at: null,
    last_updated_at: recorded_at,
    manifest_key: null,
    adopted_generation: null,
    backfill_id,
    is_scheduled: backfill_id === null || former.some((run) => run.is_scheduled),
    adopted_by_schedule:
      backfill_id !== null &&
      former.some((run) => run.adopted_by_schedule && run.backfill_id === backfill_id),
    retry_number: spec.retry_number,
    allow_shrink: spec.allow_shrink,
    held: false,
    retry_at: null,
    in_outage: false,
    ...countsOf(inherited?.progress ?? untouchedProgress),
  });
}

/** What a run has before its first step. */
const untouchedProgress: RunProgress = { ...untouchedRun, ranges: [] };

/** What a run has that it may inherit with the progress of another. */
const countsOf = (progress: RunProgress) => ({
  ...writtenColumns(progress),
  records_total_count: progress.records_total_count,
  generation: progress.generation,
  cancel_requested: progress.cancel_requested !== null,
});

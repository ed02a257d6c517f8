import { createHash } from 'node:crypto';
import type { RecordedFile, SortKey } from '../domain/exported_files.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { RunEvent, RunEventData } from '../domain/run.ts';
import {
  activeRunStatuses,
  backfillOf,
  filesOf,
  type RunProgress,
  type RunSpec,
  type RunStatus,
} from '../domain/run_state.ts';
import type { StoredStreamEvent } from '../journal/journal.ts';
import { type Projection } from './projection.ts';
import { byKey, type CachedTable, type RowCache, type WantedRows } from './row_cache.ts';

/** SQL condition: the run failed, and is not held until a person decides. */
export const isFailedRun = (run = 'batch_export_runs'): string =>
  `(${run}.status in ('Failed', 'FailedRetryable', 'TimedOut') and not ${run}.held)`;

/** By range: the rows and bytes planned for its open file, and the last exported sort key. */
type OpenParts = Readonly<
  Record<string, { readonly rows: number; readonly bytes: number; readonly last: SortKey | null }>
>;

const none: OpenParts[string] = { rows: 0, bytes: 0, last: null };

/** How an event of a range changes the open parts: of which range, how, and which file it completes. */
interface PartsChange {
  readonly generation: number;
  readonly range: number;
  readonly next: (before: OpenParts[string]) => OpenParts[string];
  readonly file?: RecordedFile;
}

/** Undefined if the event does not change them. */
function partsChangeOf(event: RunEvent): PartsChange | undefined {
  switch (event.type) {
    case 'RunUploadCreated': {
      // It replaces the unfinished file of its range.
      const { generation, range, part } = event.data;
      const [rows, bytes] = [part?.rows ?? 0, part?.bytes ?? 0];
      return { generation, range, next: ({ last }) => ({ rows, bytes, last: part?.last ?? last }) };
    }
    case 'RunUploadResumed': {
      const { generation, range, rows, bytes } = event.data;
      return { generation, range, next: ({ last }) => ({ rows, bytes, last }) };
    }
    case 'RunPartPlanned': {
      const { generation, range, part } = event.data;
      const next = ({ rows, bytes, last }: OpenParts[string]) => ({
        rows: rows + part.rows,
        bytes: bytes + part.bytes,
        last: part.last ?? last,
      });
      return { generation, range, next };
    }
    case 'RunFileCompleted': {
      const { generation, range, file } = event.data;
      const next = ({ last }: OpenParts[string]) => ({ rows: 0, bytes: 0, last: file.last ?? last });
      return { generation, range, next, file };
    }
    default:
      return undefined;
  }
}

/** The open parts of a run that resumes from the progress of another. */
const inheritedParts = ({ ranges }: RunProgress): OpenParts =>
  Object.fromEntries(
    ranges.map(({ upload, files }, range) => {
      const parts = upload?.parts ?? [];
      return [
        String(range),
        {
          rows: parts.reduce((sum, part) => sum + part.rows, 0),
          bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
          last: parts.at(-1)?.last ?? files.last,
        },
      ] as const;
    }),
  );

/**
 * The cursor, opaque to users: a hash of the last exported key of each range, since a key may identify a person. Null before
 * the first part.
 */
function cursorOf(generation: number, parts: OpenParts): string | null {
  const reached = Object.fromEntries(Object.entries(parts).map(([range, { last }]) => [range, last]));
  if (Object.values(reached).every((last) => last === null)) return null;
  return createHash('sha256')
    .update(JSON.stringify({ generation, ranges: reached }))
    .digest('base64url')
    .slice(0, 22);
}

/** What changes with the open parts: those after the change, their cursor, and what is added to the run's totals. */
function changedParts(before: OpenParts, { generation, range, next, file }: PartsChange) {
  const open_parts: OpenParts = { ...before, [range]: next(before[range] ?? none) };
  const open = Object.values(open_parts);
  return {
    open_parts,
    cursor: cursorOf(generation, open_parts),
    files: file ? 1 : 0,
    file_rows: file?.rows ?? 0,
    file_bytes: file?.bytes ?? 0,
    open_rows: open.reduce((sum, part) => sum + part.rows, 0),
    open_bytes: open.reduce((sum, part) => sum + part.bytes, 0),
  };
}

/** SQL: the active statuses as literals, so that PostgreSQL uses the index of active runs. */
export const activeStatuses = activeRunStatuses.map((status) => `'${status}'`).join(', ');

interface RunRow extends Omit<RunSpec, 'continues_run_id' | 'purpose'> {
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
  readonly table_location: string | null;
  readonly table_version: number | null;
  readonly table_etag: string | null;
  readonly table_adds: number | null;
  readonly table_removes: number | null;
  readonly file_rows: number;
  readonly file_bytes: number;
  readonly open_parts: OpenParts;
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
  version: 19,
  reads: [],
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
      in_outage boolean not null default false,
      -- The commit of its files to a table: the table, the version, the ETag of the commit, how many files came and went.
      table_location text,
      table_version bigint,
      table_etag text,
      table_adds integer,
      table_removes integer,
      -- Rows and bytes of completed files, and by range those of the parts planned since.
      file_rows bigint not null default 0,
      file_bytes bigint not null default 0,
      open_parts jsonb not null default '{}'
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
    -- What people retry after an outage.
    create index batch_export_runs_failed on exportd.batch_export_runs (batch_export_id, data_interval_start)
      where ${isFailedRun()};
    create index batch_export_runs_backfill on exportd.batch_export_runs (backfill_id) where backfill_id is not null;
    create index batch_export_runs_table on exportd.batch_export_runs (batch_export_id, table_location, table_version desc)
      where table_version is not null;
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
    if (stream_type !== 'run' || !isFolded(stored)) return [];
    const run: WantedRows = { table: runsTable, lookup: byKey, values: [stored.stream_id] };
    if (stored.type !== 'RunCreated')
      return [{ ...run, isAssigned: changesOf(stored, stored.recorded_at) !== undefined }];
    const { batch_export_id, data_interval_start: start, data_interval_end: end } = stored.data;
    return [{ ...run, isNew: true }, intervalOf(batch_export_id, { start, end })];
  },
  fold: (rows, { stream_type, stored }) => {
    if (stream_type === 'run') foldRun(rows, stored);
    if (stream_type !== 'batch_export') return;
    if (stored.type === 'IntervalScheduled') markScheduled(rows, stored.stream_id, stored.data);
    if (stored.type === 'HistoryCollapsed') rows.deleteAll(runsTable, byKey, stored.data.run_ids);
  },
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
const inGeneration = (generation: number) => ({
  generation,
  files: 0,
  file_rows: 0,
  file_bytes: 0,
  open_parts: {} satisfies OpenParts,
  cursor: null,
});

/** What an event sets in the row of its run, beside `last_updated_at`; undefined if it depends on the row, or on nothing. */
function changesOf(event: RunEvent, at: string): Partial<RunRow> | undefined {
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
        open_parts: {},
      };
    case 'RunTableCommitted': {
      const { location, version, etag, adds, removes } = event.data;
      return {
        table_location: location,
        table_version: version,
        table_etag: etag,
        table_adds: adds,
        table_removes: removes,
      };
    }
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
    case 'RunCreated':
    case 'RunUploadCreated':
    case 'RunUploadResumed':
    case 'RunPartPlanned':
    case 'RunFileCompleted':
    case 'RunExportFinished':
    case 'RunAttemptStarted':
    case 'RunKeyTaken':
    case 'RunRangeFinished':
    case 'RunRejectedFilePlanned':
    case 'RunPublishStarted':
    case 'RunPublishResumed':
    case 'RunPublishWithdrawn':
    case 'RunTableCommitPlanned':
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

/** Whether an event changes the row of its run. */
const isFolded = (event: RunEvent & { readonly recorded_at: string }): boolean =>
  event.type === 'RunCreated' ||
  event.type === 'RunExportFinished' ||
  partsChangeOf(event) !== undefined ||
  changesOf(event, event.recorded_at) !== undefined;

function foldRun(rows: RowCache, stored: StoredStreamEvent<'run'>): void {
  if (stored.type === 'RunCreated') {
    insertRow(rows, stored, stored.data);
    return;
  }
  const { stream_id: id, recorded_at: last_updated_at } = stored;
  const changes = changesOf(stored, last_updated_at);
  if (changes) rows.assign(runsTable, [id], { last_updated_at, ...changes });
  const parts = partsChangeOf(stored);
  const run = parts || stored.type === 'RunExportFinished' ? rows.get(runsTable, id) : undefined;
  if (!run) return;
  if (!parts) {
    const finished = { records_completed: run.file_rows, bytes: run.file_bytes, latest_error: null };
    rows.change(runsTable, run, { last_updated_at, ...finished });
    return;
  }
  const after = changedParts(run.open_parts, parts);
  const file_rows = run.file_rows + after.file_rows;
  const file_bytes = run.file_bytes + after.file_bytes;
  // Parts that were lost and are sent again are no progress.
  const isProgress = after.files > 0 || file_rows + after.open_rows > run.records_completed;
  rows.change(runsTable, run, {
    last_updated_at,
    open_parts: after.open_parts,
    cursor: after.cursor,
    files: run.files + after.files,
    file_rows,
    file_bytes,
    // Never decreases, even in a new attempt.
    records_completed: Math.max(run.records_completed, file_rows + after.open_rows),
    bytes: Math.max(run.bytes, file_bytes + after.open_bytes),
    ...(isProgress && { latest_error: null }),
  });
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
  const resumed = former.find(({ id }) => id === inherited?.run_id);
  rows.set(runsTable, {
    id: stream_id,
    position: global_position,
    batch_export_id,
    team_id: spec.team_id,
    model: spec.model,
    config_version: spec.config_version,
    status: 'Starting',
    records_completed: resumed?.records_completed ?? 0,
    latest_error: null,
    data_interval_start,
    data_interval_end,
    created_at: recorded_at,
    finished_at: null,
    last_updated_at: recorded_at,
    bytes: resumed?.bytes ?? 0,
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
    table_location: null,
    table_version: null,
    table_etag: null,
    table_adds: null,
    table_removes: null,
    ...(resumed && inherited ? inheritedCounts(inherited.progress) : noCounts),
  });
}

/** What a run has before its first step. */
const noCounts = { ...inGeneration(0), records_total_count: null, cancel_requested: false };

/** The counts that a run inherits with the progress of another. */
function inheritedCounts(progress: RunProgress) {
  const files = filesOf(progress);
  const open_parts = inheritedParts(progress);
  return {
    records_total_count: progress.records_total_count,
    generation: progress.generation,
    files: files.count,
    file_rows: files.rows,
    file_bytes: files.bytes,
    open_parts,
    cursor: cursorOf(progress.generation, open_parts),
    cancel_requested: progress.cancel_requested !== null,
  };
}

import { createHash } from 'node:crypto';
import type { RecordedFile, SortKey } from '../domain/exported_files.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { RunEvent, RunEventData } from '../domain/run.ts';
import {
  activeRunStatuses,
  type ExistingRun,
  backfillOf,
  filesOf,
  type InheritedProgress,
  type RunProgress,
  type RunSpec,
} from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import type { FoldedState, StoredEvent } from '../journal/journal.ts';
import { type FoldedEvent, type Projection } from './projection.ts';
import { digestOf } from './batch_exports.ts';
import { byKey, type CachedTable, type Row, type RowCache } from './row_cache.ts';
import { readRun } from './stream_states.ts';

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

/** Changes the open parts of one range, or completes a file. The run's totals never decrease, even in a new attempt. */
async function changeParts(
  connection: Connection,
  { stream_id: runId, recorded_at: at }: StoredEvent,
  change: PartsChange,
): Promise<void> {
  const { rows } = await connection.query<{ open_parts: OpenParts }>(
    'select open_parts from exportd.batch_export_runs where id = $1',
    [runId],
  );
  const after = changedParts(rows[0]?.open_parts ?? {}, change);
  await connection.query(
    `update exportd.batch_export_runs set last_updated_at = $2, open_parts = $3, cursor = $4, files = files + $5,
       file_rows = file_rows + $6, file_bytes = file_bytes + $7,
       records_completed = greatest(records_completed, file_rows + $6 + $8),
       bytes = greatest(bytes, file_bytes + $7 + $9),
       -- Parts that were lost and are sent again are no progress.
       latest_error = case when $5 = 0 and file_rows + $6 + $8 <= records_completed then latest_error end
     where id = $1`,
    [
      runId,
      at,
      JSON.stringify(after.open_parts),
      after.cursor,
      after.files,
      after.file_rows,
      after.file_bytes,
      after.open_rows,
      after.open_bytes,
    ],
  );
}

/** SQL: the active statuses as literals, so that PostgreSQL uses the index of active runs. */
export const activeStatuses = activeRunStatuses.map((status) => `'${status}'`).join(', ');

/** The table of `runsProjection`, for projections that read it. */
export const runsTable: CachedTable = {
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
  apply: async (connection, event) => {
    if (event.stream_type === 'run') await fold(connection, event);
    if (event.stream_type === 'batch_export' && event.type === 'IntervalScheduled')
      await markScheduled(connection, event);
    const digest = digestOf(event);
    if (digest)
      await connection.query('delete from exportd.batch_export_runs where id = any($1)', [digest.run_ids]);
  },
  batch: {
    tables: [runsTable],
    wants: ({ stored }) => {
      if (stored.stream_type === 'batch_export' && stored.type === 'IntervalScheduled') {
        const { start, end, run_id } = stored.data as DataInterval & { readonly run_id: string };
        return [
          { table: runsTable, lookup: 'interval', values: [stored.stream_id, start, end] },
          { table: runsTable, lookup: byKey, values: [run_id] },
        ];
      }
      if (stored.stream_type !== 'run') return [];
      const wanted = { table: runsTable, lookup: byKey, values: [stored.stream_id] };
      if (stored.type !== 'RunCreated') return [wanted];
      const { batch_export_id, data_interval_start, data_interval_end } = stored.data as RunSpec;
      const values = [batch_export_id, data_interval_start, data_interval_end];
      return [
        { ...wanted, isNew: true },
        { table: runsTable, lookup: 'interval', values },
      ];
    },
    fold: foldRow,
  },
};

/** A new generation, of which nothing is exported. */
const inGeneration = (generation: number): Row => ({
  generation,
  files: 0,
  file_rows: 0,
  file_bytes: 0,
  open_parts: {},
  cursor: null,
});

/** What an event sets in the row of its run, beside `last_updated_at`; undefined if it depends on the row, or on nothing. */
function changesOf(event: RunEvent, at: string): Row | undefined {
  const ended = (status: string, error: string | null) => ({
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

async function fold(connection: Connection, stored: StoredEvent): Promise<void> {
  const event = stored as unknown as RunEvent;
  const update = (assignments: string, ...values: readonly unknown[]) =>
    connection.query(
      `update exportd.batch_export_runs set last_updated_at = $2, ${assignments} where id = $1`,
      [stored.stream_id, stored.recorded_at, ...values],
    );
  if (event.type === 'RunCreated') {
    await insert(connection, stored, event.data);
    if (event.data.inherited) await inherit(connection, stored.stream_id, event.data.inherited);
    return;
  }
  if (event.type === 'RunExportFinished') {
    await update('records_completed = file_rows, bytes = file_bytes, latest_error = null');
    return;
  }
  const parts = partsChangeOf(event);
  if (parts) {
    await changeParts(connection, stored, parts);
    return;
  }
  const changes = Object.entries(changesOf(event, stored.recorded_at) ?? {});
  if (changes.length > 0)
    await update(
      changes.map(([column], index) => `${column} = $${index + 3}`).join(', '),
      ...changes.map(([, value]) => value),
    );
}

/** The fold of a rebuild. */
async function foldRow(rows: RowCache, { stored }: FoldedEvent): Promise<boolean> {
  if (stored.stream_type === 'batch_export' && stored.type === 'IntervalScheduled') {
    const { start, end, run_id } = stored.data as DataInterval & { readonly run_id: string };
    const adopted = await rows.get(runsTable, run_id);
    for (const run of await rows.find(runsTable, 'interval', stored.stream_id, start, end)) {
      const isAdopted = run.backfill_id !== null && run.backfill_id === adopted?.backfill_id;
      const adopted_by_schedule = run.adopted_by_schedule === true || isAdopted;
      rows.change(runsTable, run, { is_scheduled: true, adopted_by_schedule });
    }
  }
  if (stored.stream_type !== 'run') return true;
  const event = stored as unknown as RunEvent;
  if (event.type === 'RunCreated') {
    await insertRow(rows, stored, event.data);
    return true;
  }
  const parts = partsChangeOf(event);
  const changes = changesOf(event, stored.recorded_at);
  if (!parts && !changes && event.type !== 'RunExportFinished') return true;
  const run = await rows.get(runsTable, stored.stream_id);
  if (!run) return true;
  const row = run as unknown as CountedRun;
  const last_updated_at = stored.recorded_at;
  if (parts) {
    const after = changedParts(row.open_parts, parts);
    const file_rows = row.file_rows + after.file_rows;
    const file_bytes = row.file_bytes + after.file_bytes;
    const isProgress = after.files > 0 || file_rows + after.open_rows > row.records_completed;
    rows.change(runsTable, run, {
      last_updated_at,
      open_parts: after.open_parts,
      cursor: after.cursor,
      files: row.files + after.files,
      file_rows,
      file_bytes,
      records_completed: Math.max(row.records_completed, file_rows + after.open_rows),
      bytes: Math.max(row.bytes, file_bytes + after.open_bytes),
      ...(isProgress && { latest_error: null }),
    });
  } else {
    const finished = { records_completed: row.file_rows, bytes: row.file_bytes, latest_error: null };
    rows.change(runsTable, run, { last_updated_at, ...(changes ?? finished) });
  }
  return true;
}

/** The counts of a row of `runsTable`. */
interface CountedRun {
  readonly open_parts: OpenParts;
  readonly records_completed: number;
  readonly bytes: number;
  readonly files: number;
  readonly file_rows: number;
  readonly file_bytes: number;
}

/** Inserts the row of a new run, as `insert` and `inherit` do. */
async function insertRow(
  rows: RowCache,
  { stream_id, global_position, recorded_at }: StoredEvent,
  spec: RunEventData<'RunCreated'>,
): Promise<void> {
  const { batch_export_id, data_interval_start, data_interval_end, inherited } = spec;
  const backfill_id = backfillOf(spec);
  const former = await rows.find(
    runsTable,
    'interval',
    batch_export_id,
    data_interval_start,
    data_interval_end,
  );
  for (const run of former) if (run.retry_at !== null) rows.change(runsTable, run, { retry_at: null });
  const resumed = inherited && (await rows.get(runsTable, inherited.run_id));
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
    ...(resumed ? inheritedCounts(inherited.progress) : noCounts),
  });
}

/** What a run has before its first step. */
const noCounts = { ...inGeneration(0), records_total_count: null, cancel_requested: false };

/** The counts that a run inherits with the progress of another. */
function inheritedCounts(progress: RunProgress): Row {
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

/** Marks the interval's runs as scheduled, and those of a backfill as adopted. */
async function markScheduled(connection: Connection, stored: StoredEvent): Promise<void> {
  const { start, end, run_id } = stored.data as DataInterval & { readonly run_id: string };
  await connection.query(
    `update exportd.batch_export_runs set is_scheduled = true, adopted_by_schedule = adopted_by_schedule or coalesce(
       backfill_id = (select adopted.backfill_id from exportd.batch_export_runs adopted where adopted.id = $4), false)
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
    [stored.stream_id, start, end, run_id],
  );
}

async function insert(
  connection: Connection,
  stored: StoredEvent,
  spec: RunEventData<'RunCreated'>,
): Promise<void> {
  await connection.query(
    `update exportd.batch_export_runs set retry_at = null
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3 and retry_at is not null`,
    [spec.batch_export_id, spec.data_interval_start, spec.data_interval_end],
  );
  await connection.query(
    `insert into exportd.batch_export_runs (id, position, batch_export_id, team_id, model, config_version, status,
       data_interval_start, data_interval_end, backfill_id, retry_number, created_at, last_updated_at, allow_shrink,
       is_scheduled, adopted_by_schedule)
     select $1, $2, $3, $4, $5, $6, 'Starting', $7::timestamptz, $8::timestamptz, $9::uuid, $10, $11, $11, $12::boolean,
       $9::uuid is null or coalesce(bool_or(former.is_scheduled), false),
       coalesce(bool_or(former.adopted_by_schedule and former.backfill_id = $9), false)
     from exportd.batch_export_runs former
     where former.batch_export_id = $3 and former.data_interval_start = $7 and former.data_interval_end = $8`,
    [
      stored.stream_id,
      stored.global_position,
      spec.batch_export_id,
      spec.team_id,
      spec.model,
      spec.config_version,
      spec.data_interval_start,
      spec.data_interval_end,
      backfillOf(spec),
      spec.retry_number,
      stored.recorded_at,
      spec.allow_shrink,
    ],
  );
}

/** Initializes the counts of a run with those of the run that it resumes from. */
async function inherit(
  connection: Connection,
  id: string,
  { run_id, progress }: InheritedProgress,
): Promise<void> {
  const counts = Object.entries(inheritedCounts(progress));
  await connection.query(
    `update exportd.batch_export_runs run set
       ${counts.map(([column], index) => `${column} = $${index + 3}`).join(', ')},
       records_completed = former.records_completed, bytes = former.bytes
     from exportd.batch_export_runs former where run.id = $1 and former.id = $2`,
    [id, run_id, ...counts.map(([, value]) => value)],
  );
}

const unsettledTable: CachedTable = {
  name: 'exportd.unsettled_runs',
  key: ['batch_export_id', 'data_interval_start', 'data_interval_end'],
  lookups: { run: { columns: ['run_id'] }, export: { columns: ['batch_export_id'] } },
};

/** One row per interval whose current manifest was exported while transactions of the source were open. */
export const unsettledRunsProjection: Projection = {
  name: 'unsettled_runs',
  version: 1,
  reads: ['stream_states'],
  owns: ['exportd.unsettled_runs'],
  tables: `
    create table exportd.unsettled_runs (
      batch_export_id uuid not null,
      data_interval_start timestamptz not null,
      data_interval_end timestamptz not null,
      -- The run of the current manifest.
      run_id uuid not null unique,
      model text not null,
      -- The state of its barrier; null once the interval is exported again. The row remains until that run completes.
      barrier jsonb,
      -- Whether the run was itself requested because the transactions of an earlier run had ended.
      is_repeated boolean not null default false,
      primary key (batch_export_id, data_interval_start, data_interval_end)
    );
    create index unsettled_runs_waiting on exportd.unsettled_runs (run_id) where barrier is not null`,
  apply: async (connection, event, folded) => {
    if (event.stream_type === 'run') await foldRun(connection, event, folded);
    if (event.stream_type === 'batch_export' && event.type === 'BatchExportDeleted')
      await connection.query('delete from exportd.unsettled_runs where batch_export_id = $1', [
        event.stream_id,
      ]);
  },
  batch: {
    tables: [unsettledTable],
    wants: ({ stored, state }) => {
      if (stored.stream_type !== 'run' || stored.type !== 'RunCompleted') return [];
      return [{ table: unsettledTable, lookup: byKey, values: intervalOf(state as ExistingRun) }];
    },
    fold: foldUnsettledRow,
  },
};

const intervalOf = ({ spec }: ExistingRun) => [
  spec.batch_export_id,
  spec.data_interval_start,
  spec.data_interval_end,
];

/** The fold of a rebuild. */
async function foldUnsettledRow(rows: RowCache, { stored, state }: FoldedEvent): Promise<boolean> {
  const { stream_type, stream_id } = stored;
  if (stream_type === 'batch_export' && stored.type === 'BatchExportDeleted')
    for (const row of await rows.find(unsettledTable, 'export', stream_id)) rows.delete(unsettledTable, row);
  if (stream_type !== 'run') return true;
  const event = stored as unknown as RunEvent;
  if (event.type === 'RunCompleted') {
    const run = state as ExistingRun;
    const former = await rows.get(unsettledTable, ...intervalOf(run));
    if (former) rows.delete(unsettledTable, former);
    if (run.unsettled_barrier === null) return true;
    const [batch_export_id, data_interval_start, data_interval_end] = intervalOf(run);
    rows.set(unsettledTable, {
      batch_export_id,
      data_interval_start,
      data_interval_end,
      run_id: stream_id,
      model: run.spec.model,
      barrier: run.unsettled_barrier,
      is_repeated: former?.barrier === null,
    });
  }
  if (event.type !== 'RunBarrierAdvanced' && event.type !== 'RunSettled') return true;
  for (const row of await rows.find(unsettledTable, 'run', stream_id)) {
    if (event.type === 'RunBarrierAdvanced')
      rows.change(unsettledTable, row, { barrier: event.data.barrier });
    else if (event.data.outcome === 'exported_again') rows.change(unsettledTable, row, { barrier: null });
    else rows.delete(unsettledTable, row);
  }
  return true;
}

async function foldRun(connection: Connection, stored: StoredEvent, folded?: FoldedState): Promise<void> {
  const event = stored as unknown as RunEvent;
  switch (event.type) {
    case 'RunCompleted':
      await replaceManifest(connection, stored, folded);
      return;
    case 'RunBarrierAdvanced':
      await connection.query('update exportd.unsettled_runs set barrier = $2 where run_id = $1', [
        stored.stream_id,
        JSON.stringify(event.data.barrier),
      ]);
      return;
    case 'RunSettled':
      await connection.query(
        event.data.outcome === 'exported_again'
          ? 'update exportd.unsettled_runs set barrier = null where run_id = $1'
          : 'delete from exportd.unsettled_runs where run_id = $1',
        [stored.stream_id],
      );
      return;
    default:
      return;
  }
}

/** The run's manifest is current from here on. The barrier of the former one no longer matters. */
async function replaceManifest(
  connection: Connection,
  stored: StoredEvent,
  folded?: FoldedState,
): Promise<void> {
  const run = await readRun(connection, stored, folded);
  const { batch_export_id, data_interval_start: start, data_interval_end: end, model } = run.spec;
  const { rows: former } = await connection.query<{ is_repeated: boolean }>({
    name: 'unsettled-run-replaced',
    text: `delete from exportd.unsettled_runs
      where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3
      returning barrier is null as is_repeated`,
    values: [batch_export_id, start, end],
  });
  if (run.unsettled_barrier === null) return;
  await connection.query(
    `insert into exportd.unsettled_runs (batch_export_id, data_interval_start, data_interval_end, run_id, model, barrier,
       is_repeated) values ($1, $2, $3, $4, $5, $6, $7)`,
    [
      batch_export_id,
      start,
      end,
      stored.stream_id,
      model,
      JSON.stringify(run.unsettled_barrier),
      former[0]?.is_repeated ?? false,
    ],
  );
}

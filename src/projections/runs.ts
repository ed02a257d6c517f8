import type { CompletedFile, SortKey } from '../domain/exported_files.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { RunEvent, RunEventData } from '../domain/run.ts';
import { activeRunStatuses, filesOf, type InheritedProgress, type RunProgress } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import type { FoldedState, StoredEvent } from '../journal/journal.ts';
import { digestOf, type Projection } from './projection.ts';
import { readRun } from './stream_states.ts';

/** SQL condition: the run failed, and is not held until a person decides. */
export const isFailedRun = (run = 'batch_export_runs'): string =>
  `(${run}.status in ('Failed', 'FailedRetryable', 'TimedOut') and not ${run}.held)`;

/** By range: the rows and bytes planned for its open file, and the last exported sort key. */
type OpenParts = Readonly<
  Record<string, { readonly rows: number; readonly bytes: number; readonly last: SortKey | null }>
>;

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

/** The cursor, opaque to users: the last exported key of each range. Null before the first part. */
function cursorOf(generation: number, parts: OpenParts): string | null {
  const reached = Object.fromEntries(Object.entries(parts).map(([range, { last }]) => [range, last]));
  if (Object.values(reached).every((last) => last === null)) return null;
  return Buffer.from(JSON.stringify({ generation, ranges: reached })).toString('base64url');
}

/** Changes the open parts of one range, or completes their `file`. The run's totals never decrease, even in a new attempt. */
async function changeParts(
  connection: Connection,
  { stream_id: runId, recorded_at: at }: StoredEvent,
  { generation, range }: { readonly generation: number; readonly range: number },
  next: (before: OpenParts[string]) => OpenParts[string],
  file?: CompletedFile,
): Promise<void> {
  const { rows } = await connection.query<{ open_parts: OpenParts }>(
    'select open_parts from exportd.batch_export_runs where id = $1',
    [runId],
  );
  const before = rows[0]?.open_parts ?? {};
  const parts: OpenParts = {
    ...before,
    [range]: next(before[range] ?? { rows: 0, bytes: 0, last: null }),
  };
  const open = Object.values(parts);
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
      JSON.stringify(parts),
      cursorOf(generation, parts),
      file ? 1 : 0,
      file?.rows ?? 0,
      file?.bytes ?? 0,
      open.reduce((sum, part) => sum + part.rows, 0),
      open.reduce((sum, part) => sum + part.bytes, 0),
    ],
  );
}

/** SQL: the active statuses as literals, so that PostgreSQL uses the index of active runs. */
export const activeStatuses = activeRunStatuses.map((status) => `'${status}'`).join(', ');

/** One row per run for the HTTP API. */
export const runsProjection: Projection = {
  name: 'runs',
  version: 16,
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
    create index batch_export_runs_retry on exportd.batch_export_runs (batch_export_id, retry_at) where retry_at is not null`,
  apply: async (connection, event) => {
    if (event.stream_type === 'run') await fold(connection, event);
    if (event.stream_type === 'batch_export' && event.type === 'IntervalScheduled')
      await markScheduled(connection, event);
    const digest = digestOf(event);
    if (digest)
      await connection.query('delete from exportd.batch_export_runs where id = any($1)', [digest.run_ids]);
  },
};

async function fold(connection: Connection, stored: StoredEvent): Promise<void> {
  const id = stored.stream_id;
  const at = stored.recorded_at;
  const event = stored as unknown as RunEvent;
  const set = (assignments: string, ...values: readonly unknown[]) =>
    connection.query(
      `update exportd.batch_export_runs set last_updated_at = $2, ${assignments} where id = $1`,
      [id, at, ...values],
    );
  const end = (status: string, error: string | null) =>
    set('status = $3, latest_error = coalesce($4, latest_error), finished_at = $2', status, error);
  switch (event.type) {
    case 'RunCreated':
      await insert(connection, stored, event.data);
      if (event.data.inherited) await inherit(connection, id, event.data.inherited);
      return;
    case 'RunCounted':
      await set('records_total_count = $3, latest_error = null', event.data.records_total_count);
      return;
    case 'RunExportStarted':
      await set(`status = 'Running'`);
      return;
    case 'RunGenerationReserved':
      await set(
        `generation = $3, files = 0, file_rows = 0, file_bytes = 0, open_parts = '{}', cursor = null`,
        event.data.generation,
      );
      return;
    case 'RunManifestAdopted':
      await set('adopted_generation = $3, generation = $4', event.data.generation, event.data.raised_to);
      return;
    case 'RunUploadCreated':
      // It replaces the unfinished file of its range.
      await changeParts(connection, stored, event.data, ({ last }) => ({ rows: 0, bytes: 0, last }));
      return;
    case 'RunUploadResumed': {
      const { rows, bytes } = event.data;
      await changeParts(connection, stored, event.data, ({ last }) => ({ rows, bytes, last }));
      return;
    }
    case 'RunPartPlanned': {
      const { part } = event.data;
      await changeParts(connection, stored, event.data, ({ rows, bytes, last }) => ({
        rows: rows + part.rows,
        bytes: bytes + part.bytes,
        last: part.last ?? last,
      }));
      return;
    }
    case 'RunFileCompleted': {
      const { file } = event.data;
      const next = ({ last }: OpenParts[string]) => ({ rows: 0, bytes: 0, last: file.last ?? last });
      await changeParts(connection, stored, event.data, next, file);
      return;
    }
    case 'RunExportFinished':
      await set('records_completed = file_rows, bytes = file_bytes, latest_error = null');
      return;
    case 'RunAttemptFailed':
      await set('latest_error = $3', event.data.latest_error);
      return;
    case 'RunReplacementChecked':
      await set(
        'latest_error = null, records_total_count = coalesce($3, records_total_count)',
        event.data.base?.late_rows,
      );
      return;
    case 'RunAttemptStarted':
    case 'RunKeyTaken':
    case 'RunRangeFinished':
    case 'RunRejectedFilePlanned':
    case 'RunPublishStarted':
    case 'RunPublishResumed':
    case 'RunPublishWithdrawn':
    case 'RunObjectDeleted':
    case 'RunObjectDeletionFailed':
    case 'RunBarrierAdvanced':
    case 'RunSettled':
    case 'IntervalCompared':
      return;
    case 'RunCompleted':
      await set(
        `status = 'Completed', finished_at = $2, manifest_key = $3, latest_error = null`,
        event.data.manifest_key,
      );
      return;
    case 'RunFailed':
      await end('Failed', event.data.latest_error);
      if (event.data.held) await set('held = true');
      return;
    case 'RunTerminated':
      await end('Terminated', event.data.latest_error);
      return;
    case 'RunCancelRequested':
      await set('cancel_requested = true');
      return;
    case 'RunCancelled':
      await end('Cancelled', event.data.reason);
      return;
    case 'RunFailedRetryable':
    case 'RunTimedOut':
      await end(event.type === 'RunTimedOut' ? 'TimedOut' : 'FailedRetryable', event.data.latest_error);
      await set(
        `retry_at = $2::timestamptz + make_interval(secs => $3), in_outage = $4`,
        event.data.retry_delay_seconds,
        event.data.in_outage === true,
      );
      return;
    case 'RunRetryCancelled':
      await set('retry_at = null');
      return;
    case 'RunContinuedAsNew':
      await set(
        `status = 'ContinuedAsNew', finished_at = $2, cursor = $3, latest_error = null`,
        event.data.cursor,
      );
      return;
  }
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
      spec.backfill_id,
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
  const { records_total_count, generation, cancel_requested } = progress;
  const files = filesOf(progress);
  const open_parts = inheritedParts(progress);
  await connection.query(
    `update exportd.batch_export_runs run set records_total_count = $3, generation = $4, files = $5,
       file_rows = $6, file_bytes = $7, open_parts = $8, cursor = $9, cancel_requested = $10,
       records_completed = former.records_completed, bytes = former.bytes
     from exportd.batch_export_runs former where run.id = $1 and former.id = $2`,
    [
      id,
      run_id,
      records_total_count,
      generation,
      files.count,
      files.rows,
      files.bytes,
      JSON.stringify(open_parts),
      cursorOf(generation, open_parts),
      cancel_requested !== null,
    ],
  );
}

/** One row per interval whose current manifest was exported while transactions of the source were open. */
export const unsettledRunsProjection: Projection = {
  name: 'unsettled_runs',
  version: 1,
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
};

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

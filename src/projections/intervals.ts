import type { BatchExportEvent, HistoryDigest, SkippedRange } from '../domain/batch_export.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { MissingRows } from '../domain/exported_files.ts';
import { fingerprintHashOf, totalOf } from '../domain/fingerprint.ts';
import type { RunEvent, RunEventData } from '../domain/run.ts';
import { type ExistingRun, filesOf, type RunSpec, sourceAfter } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import type { FoldedState, StoredEvent } from '../journal/journal.ts';
import { type FoldedEvent, type Projection } from './projection.ts';
import { digestOf } from './batch_exports.ts';
import { byKey, type CachedTable, type Row, type RowCache, type WantedRows } from './row_cache.ts';
import { readRun } from './stream_states.ts';

/**
 * SQL: common table expressions that add the ranges `entry (starts, ends)` to what the rows of export $1 cover. Its stream is
 * locked.
 */
const coverEntries = `touched as (
    select starts, ends from exportd.covered_ranges
    where batch_export_id = $1 and starts <= (select max(ends) from entry) and ends >= (select min(starts) from entry)
  ), joined as materialized (
    select lower(range) as starts, upper(range) as ends from (
      select unnest(range_agg(tstzrange(starts, ends))) as range from (table entry union all table touched) part) ranges
  ), absorbed as (
    delete from exportd.covered_ranges covered using touched
    where covered.batch_export_id = $1 and covered.starts = touched.starts
      and not exists (select from joined where joined.starts = touched.starts)
  ), extended as (
    insert into exportd.covered_ranges as covered (batch_export_id, starts, ends) select $1, starts, ends from joined
    on conflict (batch_export_id, starts) do update set ends = excluded.ends where covered.ends <> excluded.ends
  )`;

/**
 * Makes a new run the newest one of its interval. If the schedule had skipped the interval, the rest of the skipped range
 * keeps its own rows: one before the interval and one after it.
 */
async function openInterval(connection: Connection, runId: string, spec: RunSpec): Promise<void> {
  await connection.query({
    name: 'open-interval',
    text: `with skipped as (
        delete from exportd.intervals where batch_export_id = $1 and run_id is null
          and data_interval_start = (
            select max(range.data_interval_start) from exportd.intervals range
            where range.batch_export_id = $1 and range.run_id is null and range.data_interval_start <= $2)
          and data_interval_end >= $3
          -- The interval's own row is updated below.
          and (data_interval_start, data_interval_end) <> ($2, $3)
        returning data_interval_start, data_interval_end, status, reason
      ), rest as (
        insert into exportd.intervals (batch_export_id, data_interval_start, data_interval_end, status, reason)
        select $1, part.starts, part.ends, skipped.status, skipped.reason
        from skipped cross join lateral (values
          (skipped.data_interval_start, $2::timestamptz), ($3::timestamptz, skipped.data_interval_end)
        ) as part (starts, ends) where part.starts < part.ends
      ), entry (starts, ends) as (values ($2::timestamptz, $3::timestamptz)), ${coverEntries}
      insert into exportd.intervals as interval (batch_export_id, data_interval_start, data_interval_end, status,
        run_id, is_scheduled)
      values ($1, $2, $3, 'running', $4, $5)
      on conflict (batch_export_id, data_interval_start, data_interval_end) do update
        set status = 'running', reason = null, run_id = excluded.run_id, taken_keys = 0,
          is_scheduled = interval.is_scheduled or excluded.is_scheduled`,
    values: [
      spec.batch_export_id,
      spec.data_interval_start,
      spec.data_interval_end,
      runId,
      spec.purpose.kind === 'interval',
    ],
  });
}

/**
 * SQL: the parts of a range between the intervals of the ledger that lie in it, as `starts` and `ends`. The arguments are
 * expressions of the export's id and of the bounds.
 */
export const partsWithoutEntry = (batchExportId: string, start: string, end: string): string => `
  select hole.starts, hole.ends from (
    select lag(inside.data_interval_end, 1, ${start}) over (order by inside.data_interval_start) as starts,
      inside.data_interval_start as ends
    from (
      select data_interval_start, data_interval_end from exportd.intervals
      where batch_export_id = ${batchExportId} and data_interval_start >= ${start} and data_interval_end <= ${end}
      -- Ends the last hole.
      union all select ${end}, ${end}
    ) inside
  ) hole where hole.starts < hole.ends`;

/** Adds a range that the schedule skips, without the intervals that already have a run. */
async function insertSkippedRange(
  connection: Connection,
  batchExportId: string,
  { start, end, reason }: SkippedRange,
): Promise<void> {
  await connection.query(
    `with entry (starts, ends) as (values ($2::timestamptz, $3::timestamptz)), ${coverEntries}
     insert into exportd.intervals (batch_export_id, data_interval_start, data_interval_end, status, reason)
     select $1, starts, ends, $4, $5 from (${partsWithoutEntry('$1', '$2::timestamptz', '$3::timestamptz')}) part`,
    [batchExportId, start, end, skipStatusOf(reason), reason],
  );
}

/** The status of a range that the schedule skips. */
export const skipStatusOf = (reason: SkippedRange['reason']): 'paused' | 'excluded' =>
  reason === 'paused' ? 'paused' : 'excluded';

/** Changes the row of a run's interval; `run` is the run after the event. */
type IntervalChange = (connection: Connection, run: ExistingRun, stored: StoredEvent) => Promise<void>;

/** SQL condition: the row of the run's interval; $1 to $3 are `intervalKey`. */
const isInterval = 'batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3';
const intervalKey = ({ spec }: ExistingRun) => [
  spec.batch_export_id,
  spec.data_interval_start,
  spec.data_interval_end,
];

/** Returns how an event of a run changes its interval; undefined if it does not. */
function intervalChangeOf(event: RunEvent): IntervalChange | undefined {
  switch (event.type) {
    case 'RunCompleted':
      return recordManifest(event.data);
    case 'RunSettled':
      return recordSettling(event.data);
    case 'RunKeyTaken':
      return recordTakenKey;
    case 'RunFailed':
      return recordEnd({ isRetried: false, held: event.data.held });
    case 'RunTerminated':
    case 'RunCancelled':
      return recordEnd({ isRetried: false });
    case 'RunFailedRetryable':
    case 'RunTimedOut':
      return recordEnd({ isRetried: event.data.retry_delay_seconds !== null });
    case 'RunRetryCancelled':
      return recordEnd({ isRetried: false });
    default:
      return undefined;
  }
}

/** Records how the newest run ended without a manifest. An earlier manifest stays current. */
const recordEnd =
  ({
    isRetried,
    held,
  }: {
    readonly isRetried: boolean;
    readonly held?: MissingRows | undefined;
  }): IntervalChange =>
  async (connection, run, stored) => {
    // A person ended the run. This says nothing about the rows of an earlier manifest.
    const isDeliberate = run.status === 'Cancelled' || run.status === 'Terminated';
    await connection.query({
      name: 'interval-ended',
      text: `update exportd.intervals interval set status = ended.status, held = ended.held,
          reason = case when ended.status in ('failed', 'gap') then $5 end
        from (
          select end_of_run.held, case
            when $6 then 'failed'
            when end_of_run.held is not null then 'held'
            when manifest_run_id is null then 'gap'
            when not $7 then 'failed'
            when settled or settling_outcome is not null then 'exported'
            else 'unsettled' end as status
          -- A person who ends the next run does not decide about the rows that a run was held for.
          from exportd.intervals cross join lateral (
            select case when $7 then held else $8::jsonb end as held) end_of_run
          where ${isInterval}) ended
        where ${isInterval} and run_id = $4`,
      values: [
        ...intervalKey(run),
        stored.stream_id,
        run.status,
        isRetried,
        isDeliberate,
        held && JSON.stringify(held),
      ],
    });
  };

/** Records the manifest of a Completed run, which is the current one from here on. */
const recordManifest =
  ({ expires_at }: RunEventData<'RunCompleted'>): IntervalChange =>
  async (connection, run, stored) => {
    const columns = Object.entries(manifestColumns(run, stored, expires_at));
    await connection.query({
      name: 'interval-exported',
      text: `update exportd.intervals set ${columns.map(([column], index) => `${column} = $${index + 4}`).join(', ')}
        where ${isInterval}`,
      values: [...intervalKey(run), ...columns.map(([, value]) => value)],
    });
  };

/** What a manifest sets in the row of its interval. */
function manifestColumns(
  run: ExistingRun,
  { stream_id, recorded_at }: StoredEvent,
  expires_at: string | null,
): Row {
  const files = filesOf(run);
  const exported = [files.fingerprint, run.rejected_file?.fingerprint].flatMap((rows) => rows ?? []);
  const hash = fingerprintHashOf(run.spec.model);
  const { kept, earlier } = run.earlier_generations;
  return {
    status: run.settled ? 'exported' : 'unsettled',
    reason: null,
    held: null,
    manifest_run_id: stream_id,
    generation: run.generation,
    rows: files.rows,
    rejected_rows: run.rejected_file?.rows ?? 0,
    bytes: files.bytes,
    files: files.count,
    settled: run.settled,
    settling_outcome: null,
    completed_at: recorded_at,
    expires_at: earliest([expires_at, files.expires_at]),
    source_fingerprint: run.finished && totalOf(hash, [sourceAfter(run)]),
    bucket_fingerprint: totalOf(hash, exported),
    kept_files: kept.length,
    earlier_files: earlier.length,
    collapsed_generation: null,
    collapsed_config_version: null,
  };
}

/** Records what followed once the transactions had ended that the run of the manifest did not wait for. */
const recordSettling =
  ({ outcome }: RunEventData<'RunSettled'>): IntervalChange =>
  async (connection, run, stored) => {
    await connection.query(
      `update exportd.intervals set settling_outcome = $5,
         status = case status when 'unsettled' then 'exported' else status end
       where ${isInterval} and manifest_run_id = $4`,
      [...intervalKey(run), stored.stream_id, outcome],
    );
  };

/** Counts a key that another object has. */
const recordTakenKey: IntervalChange = async (connection, run) => {
  await connection.query(
    `update exportd.intervals set taken_keys = taken_keys + 1 where ${isInterval}`,
    intervalKey(run),
  );
};

/** The earliest of these times (ISO 8601); null if all are null. */
const earliest = (times: readonly (string | null)[]): string | null =>
  times.filter((time) => time !== null).toSorted((one, other) => Date.parse(one) - Date.parse(other))[0] ??
  null;

/** SQL condition on a row of the ledger: the interval is exported, and has runs that may be collapsed once they are old. */
export const hasHistory = `status = 'exported' and manifest_run_id is not null and collapsed_generation is null
  and kept_files = 0 and earlier_files = 0`;

/** The columns of a row that a digest keeps, without that of the export. */
const ledgerColumns = [
  'data_interval_start',
  'data_interval_end',
  'status',
  'reason',
  'is_scheduled',
  'run_id',
  'held',
  'taken_keys',
  'manifest_run_id',
  'generation',
  'rows',
  'rejected_rows',
  'bytes',
  'files',
  'settled',
  'settling_outcome',
  'completed_at',
  'expires_at',
  'source_fingerprint',
  'bucket_fingerprint',
  'kept_files',
  'earlier_files',
  'collapsed_generation',
  'collapsed_config_version',
];

/**
 * Writes the rows of a digest. After a rebuild they are the first that is known of their intervals, so ranges that the schedule
 * skipped are split as the runs had split them.
 */
async function foldDigest(
  connection: Connection,
  batchExportId: string,
  { intervals }: HistoryDigest,
): Promise<void> {
  const entries = `jsonb_populate_recordset(null::exportd.intervals, $2)`;
  await connection.query({
    name: 'split-for-digest',
    text: `with entry as materialized (select data_interval_start as starts, data_interval_end as ends from ${entries}
      ), ${coverEntries}, range as (
        select skipped.* from exportd.intervals skipped
        where skipped.batch_export_id = $1 and skipped.run_id is null
          and skipped.data_interval_start <= (select max(starts) from entry)
          and skipped.data_interval_end >= (select min(ends) from entry)
          and exists (select from entry
            where starts >= skipped.data_interval_start and ends <= skipped.data_interval_end)
      ), removed as (
        delete from exportd.intervals interval using range
        where interval.batch_export_id = $1 and interval.data_interval_start = range.data_interval_start
          and interval.data_interval_end = range.data_interval_end
      ), part as (
        select range.status, range.reason, bounds.starts, bounds.ends
        from range cross join lateral (
          select lag(inside.ends, 1, range.data_interval_start) over (order by inside.starts) as starts,
            inside.starts as ends
          from (
            select starts, ends from entry
            where starts >= range.data_interval_start and ends <= range.data_interval_end
            union all select range.data_interval_end, range.data_interval_end) inside) bounds
        where bounds.starts < bounds.ends)
      insert into exportd.intervals (batch_export_id, data_interval_start, data_interval_end, status, reason)
      select $1, starts, ends, status, reason from part`,
    values: [batchExportId, JSON.stringify(intervals)],
  });
  const columns = ledgerColumns.join(', ');
  await connection.query({
    name: 'fold-digest',
    text: `insert into exportd.intervals (batch_export_id, ${columns}) select $1, ${columns} from ${entries}
      on conflict (batch_export_id, data_interval_start, data_interval_end) do update
        set (${columns}) = row (${ledgerColumns.map((column) => `excluded.${column}`).join(', ')})`,
    values: [batchExportId, JSON.stringify(intervals)],
  });
}

/**
 * SQL: the columns of a row `interval` of the ledger as a digest keeps them.
 * @param replaced columns by name, with the SQL expressions of other values
 */
export const digestEntry = (replaced: Readonly<Record<string, string>>): string =>
  `jsonb_strip_nulls(jsonb_build_object(${ledgerColumns
    .map((column) => `'${column}', ${replaced[column] ?? `interval.${column}`}`)
    .join(', ')}))`;

/** The stored statuses of an interval. Readers derive `expired` from the clock, and `due` from the schedule's state. */
const intervalStatuses = [
  'running',
  'exported',
  'unsettled',
  'held',
  'failed',
  'gap',
  'paused',
  'excluded',
] as const;

const table: CachedTable = {
  name: 'exportd.intervals',
  key: ['batch_export_id', 'data_interval_start', 'data_interval_end'],
  lookups: {
    skipped: {
      columns: ['batch_export_id'],
      where: { sql: 'run_id is null', holds: (row) => row.run_id === null },
    },
  },
};

const coveredTable: CachedTable = {
  name: 'exportd.covered_ranges',
  key: ['batch_export_id', 'starts'],
  lookups: { export: { columns: ['batch_export_id'] } },
};

/**
 * The interval ledger: one row per interval that has a run, and one per range of intervals that the schedule skipped.
 * The rows of an export do not overlap: a run of a skipped interval splits the range. Rows stay when their runs are
 * collapsed, and go with their export. `covered_ranges` has the ranges between whose bounds no row is missing: the holes of
 * an export are found without reading its rows.
 */
export const intervalsProjection: Projection = {
  name: 'intervals',
  version: 3,
  reads: ['stream_states'],
  owns: ['exportd.intervals', 'exportd.covered_ranges'],
  tables: `
    create table exportd.intervals (
      batch_export_id uuid not null,
      data_interval_start timestamptz not null,
      data_interval_end timestamptz not null,
      status text not null check (status in (${intervalStatuses.map((status) => `'${status}'`).join(', ')})),
      -- Why the interval failed or is a gap: the status of its newest run. Why a range was skipped.
      reason text,
      -- Whether the interval belongs to the schedule: it created a run of it, or adopted a backfill's.
      is_scheduled boolean not null default false,
      -- The newest run; null for a skipped range.
      run_id uuid,
      -- The error's numbers if the newest run that failed or completed was held.
      held jsonb,
      -- Keys of the newest run that other objects had.
      taken_keys integer not null default 0,
      -- The current manifest; null before the first.
      manifest_run_id uuid,
      generation integer,
      rows bigint,
      rejected_rows bigint,
      bytes bigint,
      files integer,
      settled boolean,
      -- What followed once the transactions had ended that an unsettled run did not wait for.
      settling_outcome text,
      completed_at timestamptz,
      -- When a lifecycle rule of the bucket deletes the first of its objects; null without a rule.
      expires_at timestamptz,
      -- Rows of the source after the export, and rows of the files with the rejected ones, as fingerprint totals.
      source_fingerprint jsonb,
      bucket_fingerprint jsonb,
      -- Published files of earlier generations that stay: not needed by readers, and needed by them (persons).
      kept_files integer,
      earlier_files integer,
      -- Set while the run of the manifest is collapsed: the highest generation that runs of the interval reserved before, and the
      -- config of the manifest.
      collapsed_generation integer,
      collapsed_config_version integer,
      primary key (batch_export_id, data_interval_start, data_interval_end)
    );
    -- All others are exported. There are few, however old the export is.
    create index intervals_not_exported on exportd.intervals (batch_export_id, data_interval_start)
      where status <> 'exported';
    create index intervals_skipped on exportd.intervals (batch_export_id, data_interval_start) where run_id is null;
    create index intervals_with_history on exportd.intervals (batch_export_id, completed_at, data_interval_start)
      where ${hasHistory};
    create table exportd.covered_ranges (
      batch_export_id uuid not null,
      starts timestamptz not null,
      ends timestamptz not null,
      primary key (batch_export_id, starts)
    )`,
  apply: async (connection, event, folded) => {
    if (event.stream_type === 'run') await foldRun(connection, event, folded);
    if (event.stream_type === 'batch_export') await foldExport(connection, event);
    const digest = digestOf(event);
    if (digest && digest.intervals.length > 0) await foldDigest(connection, event.stream_id, digest);
  },
  batch: {
    tables: [table, coveredTable],
    wants: ({ stored, state }): WantedRows[] => {
      if (stored.stream_type === 'batch_export' && stored.type === 'IntervalScheduled') {
        const { start, end } = stored.data as DataInterval;
        return [{ table, lookup: byKey, values: [stored.stream_id, start, end] }];
      }
      if (stored.stream_type !== 'run') return [];
      const event = stored as unknown as RunEvent;
      if (event.type !== 'RunCreated' && !intervalChangeOf(event)) return [];
      const values = intervalKey(state as ExistingRun);
      return [
        { table, lookup: byKey, values },
        ...(event.type === 'RunCreated'
          ? [
              { table, lookup: 'skipped', values: [event.data.batch_export_id] },
              { table: coveredTable, lookup: 'export', values: [event.data.batch_export_id] },
            ]
          : []),
      ];
    },
    fold: foldRow,
  },
};

/** The fold of a rebuild. */
async function foldRow(rows: RowCache, { stored, state }: FoldedEvent): Promise<boolean> {
  if (stored.stream_type === 'batch_export') {
    // What lies in the range may be any number of rows.
    if (stored.type === 'IntervalsSkipped') return false;
    if (stored.type !== 'IntervalScheduled') return true;
    const { start, end } = stored.data as DataInterval;
    const row = await rows.get(table, stored.stream_id, start, end);
    if (row) rows.change(table, row, { is_scheduled: true });
    return true;
  }
  if (stored.stream_type !== 'run') return true;
  const event = stored as unknown as RunEvent;
  const run = state as ExistingRun;
  if (event.type === 'RunCreated') {
    await openRow(rows, stored.stream_id, event.data);
    return true;
  }
  if (!intervalChangeOf(event)) return true;
  const row = await rows.get(table, ...intervalKey(run));
  if (!row) return true;
  const isNewest = row.run_id === stored.stream_id;
  switch (event.type) {
    case 'RunCompleted':
      rows.change(table, row, manifestColumns(run, stored, event.data.expires_at));
      return true;
    case 'RunSettled':
      if (row.manifest_run_id === stored.stream_id)
        rows.change(table, row, {
          settling_outcome: event.data.outcome,
          status: row.status === 'unsettled' ? 'exported' : row.status,
        });
      return true;
    case 'RunKeyTaken':
      rows.change(table, row, { taken_keys: Number(row.taken_keys) + 1 });
      return true;
    case 'RunFailed':
    case 'RunTerminated':
    case 'RunCancelled':
    case 'RunFailedRetryable':
    case 'RunTimedOut':
    case 'RunRetryCancelled': {
      const isRetried = 'retry_delay_seconds' in event.data && event.data.retry_delay_seconds !== null;
      const held = 'held' in event.data ? event.data.held : undefined;
      if (isNewest) rows.change(table, row, endColumns(row, run, isRetried, held));
      return true;
    }
    default:
      return false;
  }
}

/** What `recordEnd` sets in a row. */
function endColumns(row: Row, run: ExistingRun, isRetried: boolean, heldNow: MissingRows | undefined): Row {
  const isDeliberate = run.status === 'Cancelled' || run.status === 'Terminated';
  const held = isDeliberate ? row.held : (heldNow ?? null);
  const status = (): string => {
    if (isRetried) return 'failed';
    if (held !== null) return 'held';
    if (row.manifest_run_id === null) return 'gap';
    if (!isDeliberate) return 'failed';
    return row.settled === true || row.settling_outcome !== null ? 'exported' : 'unsettled';
  };
  const after = status();
  return { status: after, held, reason: after === 'failed' || after === 'gap' ? run.status : null };
}

/** Does what `openInterval` does. */
async function openRow(rows: RowCache, runId: string, spec: RunSpec): Promise<void> {
  const { batch_export_id, data_interval_start, data_interval_end } = spec;
  const [start, end] = [Date.parse(data_interval_start), Date.parse(data_interval_end)];
  const own = await rows.get(table, batch_export_id, data_interval_start, data_interval_end);
  const skipped = (await rows.find(table, 'skipped', batch_export_id))
    .map((row) => ({ row, starts: Date.parse(String(row.data_interval_start)) }))
    .filter(({ starts }) => starts <= start)
    .toSorted((one, other) => other.starts - one.starts)[0];
  if (skipped && skipped.row !== own && Date.parse(String(skipped.row.data_interval_end)) >= end) {
    const { row } = skipped;
    rows.delete(table, row);
    if (skipped.starts < start) rows.set(table, { ...row, data_interval_end: data_interval_start });
    if (end < Date.parse(String(row.data_interval_end)))
      rows.set(table, { ...row, data_interval_start: data_interval_end });
  }
  const is_scheduled = spec.purpose.kind === 'interval';
  const opened = { status: 'running', reason: null, run_id: runId, taken_keys: 0 };
  if (own) {
    rows.change(table, own, { ...opened, is_scheduled: own.is_scheduled === true || is_scheduled });
    return;
  }
  await cover(rows, spec);
  rows.set(table, {
    batch_export_id,
    data_interval_start,
    data_interval_end,
    ...opened,
    is_scheduled,
    held: null,
    manifest_run_id: null,
    generation: null,
    rows: null,
    rejected_rows: null,
    bytes: null,
    files: null,
    settled: null,
    settling_outcome: null,
    completed_at: null,
    expires_at: null,
    source_fingerprint: null,
    bucket_fingerprint: null,
    kept_files: null,
    earlier_files: null,
    collapsed_generation: null,
    collapsed_config_version: null,
  });
}

/** Does what `coverEntries` does. */
async function cover(
  rows: RowCache,
  { batch_export_id, data_interval_start, data_interval_end }: RunSpec,
): Promise<void> {
  const [start, end] = [Date.parse(data_interval_start), Date.parse(data_interval_end)];
  let [starts, ends] = [data_interval_start, data_interval_end];
  for (const row of await rows.find(coveredTable, 'export', batch_export_id)) {
    const range = { starts: String(row.starts), ends: String(row.ends) };
    if (Date.parse(range.starts) > end || Date.parse(range.ends) < start) continue;
    rows.delete(coveredTable, row);
    if (Date.parse(range.starts) < Date.parse(starts)) starts = range.starts;
    if (Date.parse(range.ends) > Date.parse(ends)) ends = range.ends;
  }
  rows.set(coveredTable, { batch_export_id, starts, ends });
}

async function foldExport(connection: Connection, stored: StoredEvent): Promise<void> {
  const event = stored as unknown as BatchExportEvent;
  if (event.type === 'IntervalsSkipped') await insertSkippedRange(connection, stored.stream_id, event.data);
  // A run that the schedule created itself is marked by its first event, which follows.
  if (event.type === 'IntervalScheduled')
    await connection.query({
      name: 'interval-scheduled',
      text: `update exportd.intervals set is_scheduled = true
        where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
      values: [stored.stream_id, event.data.start, event.data.end],
    });
}

async function foldRun(connection: Connection, stored: StoredEvent, folded?: FoldedState): Promise<void> {
  const event = stored as unknown as RunEvent;
  if (event.type === 'RunCreated') return openInterval(connection, stored.stream_id, event.data);
  const change = intervalChangeOf(event);
  if (change === undefined) return;
  const run = await readRun(connection, stored, folded);
  await change(connection, run, stored);
}

import type { HistoryDigest, SkippedRange } from '../domain/batch_export.ts';
import type { StoredDecision } from '../domain/difference.ts';
import type { MissingRows } from '../domain/replacement_check.ts';
import { fingerprintHashOf, totalOf } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import {
  earlierGenerationsOf,
  type ExistingRun,
  filesOf,
  finishedOf,
  type RunSpec,
  type RunStatus,
  sourceAfter,
} from '../domain/run_state.ts';
import type { FoldedEvent, StoredStreamEvent } from '../journal/journal.ts';
import { existingRun, type Projection } from './projection.ts';
import { byKey, type CachedTable, type RowCache, type WantedRows } from './row_cache.ts';
import type { RunEvent } from '../domain/run_events.ts';

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

type FingerprintTotal = ReturnType<typeof totalOf>;

interface IntervalRow {
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly status: (typeof intervalStatuses)[number];
  readonly reason: RunStatus | SkippedRange['reason'] | null;
  readonly is_scheduled: boolean;
  readonly run_id: string | null;
  readonly held: MissingRows | null;
  readonly decision: StoredDecision | null;
  readonly taken_keys: number;
  readonly manifest_run_id: string | null;
  readonly generation: number | null;
  readonly rows: number | null;
  readonly rejected_rows: number | null;
  readonly bytes: number | null;
  readonly files: number | null;
  readonly settled: boolean | null;
  readonly settling_outcome: string | null;
  readonly completed_at: string | null;
  readonly expires_at: string | null;
  readonly source_fingerprint: FingerprintTotal | null;
  readonly bucket_fingerprint: FingerprintTotal | null;
  readonly kept_files: number | null;
  readonly earlier_files: number | null;
  readonly collapsed_generation: number | null;
  readonly collapsed_config_version: number | null;
}

/** What a row has before its first run. */
const untouched: Omit<
  IntervalRow,
  'batch_export_id' | 'data_interval_start' | 'data_interval_end' | 'status'
> = {
  reason: null,
  is_scheduled: false,
  run_id: null,
  held: null,
  decision: null,
  taken_keys: 0,
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
};

const bounds = { starts: 'data_interval_start', ends: 'data_interval_end' };

const table: CachedTable<IntervalRow> = {
  name: 'exportd.intervals',
  key: ['batch_export_id', 'data_interval_start', 'data_interval_end'],
  lookups: {
    touching: { columns: ['batch_export_id'], range: bounds },
    skipped: {
      columns: ['batch_export_id'],
      range: bounds,
      where: { sql: 'stored.run_id is null', holds: ({ run_id }) => run_id === null },
      isSelective: true,
    },
  },
};

interface CoveredRow {
  readonly batch_export_id: string;
  readonly starts: string;
  readonly ends: string;
}

const coveredTable: CachedTable<CoveredRow> = {
  name: 'exportd.covered_ranges',
  key: ['batch_export_id', 'starts'],
  lookups: { touching: { columns: ['batch_export_id'], range: { starts: 'starts', ends: 'ends' } } },
};

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
  'decision',
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
] as const satisfies readonly (keyof IntervalRow)[];

/**
 * SQL: the columns of a row `interval` of the ledger as a digest keeps them.
 * @param replaced columns by name, with the SQL expressions of other values
 */
export const digestEntry = (replaced: Readonly<Record<string, string>>): string =>
  `jsonb_strip_nulls(jsonb_build_object(${ledgerColumns
    .map((column) => `'${column}', ${replaced[column] ?? `interval.${column}`}`)
    .join(', ')}))`;

/**
 * The interval ledger: one row per interval that has a run, and one per range of intervals that the schedule skipped.
 * The rows of an export do not overlap: a run of a skipped interval splits the range. Rows stay when their runs are
 * collapsed, and go with their export. `covered_ranges` has the ranges between whose bounds no row is missing: the holes of
 * an export are found without reading its rows.
 */
export const intervalsProjection: Projection = {
  name: 'intervals',
  version: 4,
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
      -- What a person has decided about rows of the files that the source lacks; null once other files replace them.
      decision jsonb,
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
    create index intervals_expiring on exportd.intervals (batch_export_id, expires_at) where expires_at is not null;
    create index intervals_with_history on exportd.intervals (batch_export_id, completed_at, data_interval_start)
      where ${hasHistory};
    create table exportd.covered_ranges (
      batch_export_id uuid not null,
      starts timestamptz not null,
      ends timestamptz not null,
      primary key (batch_export_id, starts)
    )`,
  cached: [table, coveredTable],
  wants: (event) => (event.stream_type === 'backfill' ? [] : wantedBy(event)),
  fold: (rows, { stream_type, stored, state }) => {
    if (stream_type === 'run') foldRun(rows, stored, state);
    if (stream_type !== 'batch_export') return;
    const { stream_id: id } = stored;
    switch (stored.type) {
      case 'IntervalScheduled': {
        // A run that the schedule created itself is marked by its first event, which follows.
        const row = rows.get(table, id, stored.data.start, stored.data.end);
        if (row) rows.change(table, row, { is_scheduled: true });
        return;
      }
      case 'DifferenceDecided': {
        const { start, end, ...decided } = stored.data;
        const row = rows.get(table, id, start, end);
        if (!row) return;
        const decision = { ...decided, at: stored.recorded_at };
        const isHeld = row.status === 'held' && decided.decision === 'keep';
        const released = isHeld && { status: statusOfManifest(row), held: null, reason: null };
        rows.change(table, row, { decision, ...released });
        return;
      }
      case 'IntervalsSkipped':
        skip(rows, id, stored.data);
        return;
      case 'HistoryCollapsed':
        for (const entry of stored.data.intervals) foldDigest(rows, id, entry);
        return;
      default:
    }
  },
};

/** A row of the ledger as a digest keeps it: without null. */
type DigestEntry = HistoryDigest['intervals'][number];

const own = (batchExportId: string, { start, end }: DataInterval): WantedRows => ({
  table,
  lookup: byKey,
  values: [batchExportId, start, end],
});

/** The rows that a new interval of the ledger may change. */
const aroundOf = (batchExportId: string, interval: DataInterval): readonly WantedRows[] => {
  const values = [batchExportId, interval.start, interval.end];
  return [
    own(batchExportId, interval),
    { table, lookup: 'skipped', values },
    { table: coveredTable, lookup: 'touching', values },
  ];
};

const intervalOf = (spec: RunSpec): DataInterval => ({
  start: spec.data_interval_start,
  end: spec.data_interval_end,
});

function wantedBy({
  stream_type,
  stored,
  state,
}: Exclude<FoldedEvent, { stream_type: 'backfill' }>): readonly WantedRows[] {
  const { stream_id: id } = stored;
  if (stream_type === 'run') {
    if (stored.type === 'RunCreated') return aroundOf(stored.data.batch_export_id, intervalOf(stored.data));
    if (!changesInterval(stored)) return [];
    const { spec } = existingRun(state);
    return [own(spec.batch_export_id, intervalOf(spec))];
  }
  switch (stored.type) {
    case 'IntervalScheduled':
    case 'DifferenceDecided':
      return [own(id, stored.data)];
    case 'IntervalsSkipped': {
      const values = [id, stored.data.start, stored.data.end];
      return [
        { table, lookup: 'touching', values },
        { table: coveredTable, lookup: 'touching', values },
      ];
    }
    case 'HistoryCollapsed':
      return stored.data.intervals.flatMap((entry) => aroundOf(id, boundsOf(entry)));
    default:
      return [];
  }
}

/** The status of a range that the schedule skips. */
export const skipStatusOf = (reason: SkippedRange['reason']): 'paused' | 'excluded' =>
  reason === 'paused' ? 'paused' : 'excluded';

/** Adds a range that the schedule skips, without the intervals in it that have a run or were skipped before. */
function skip(rows: RowCache, batch_export_id: string, { start, end, reason }: SkippedRange): void {
  const status = skipStatusOf(reason);
  const inside = rows
    .find(table, 'touching', batch_export_id, start, end)
    .filter((row) => !isBefore(row.data_interval_start, start) && !isBefore(end, row.data_interval_end))
    .toSorted((one, other) => Date.parse(one.data_interval_start) - Date.parse(other.data_interval_start));
  let data_interval_start = start;
  for (const next of [...inside, { data_interval_start: end, data_interval_end: end }]) {
    const data_interval_end = next.data_interval_start;
    if (isBefore(data_interval_start, data_interval_end))
      rows.set(table, {
        ...untouched,
        batch_export_id,
        data_interval_start,
        data_interval_end,
        status,
        reason,
      });
    data_interval_start = next.data_interval_end;
  }
  cover(rows, batch_export_id, { start, end });
}

const isBefore = (one: string, other: string): boolean => Date.parse(one) < Date.parse(other);

/** Whether an event changes the row of its run's interval. */
const changesInterval = ({ type }: RunEvent): boolean => changingEvents.has(type);

const changingEvents: ReadonlySet<RunEvent['type']> = new Set<RunEvent['type']>([
  'RunCompleted',
  'RunUnchanged',
  'RunSettled',
  'RunKeyTaken',
  'RunFailed',
  'RunTerminated',
  'RunCancelled',
  'RunFailedRetryable',
  'RunTimedOut',
  'RunRetryCancelled',
]);

function foldRun(rows: RowCache, stored: StoredStreamEvent<'run'>, state: FoldedEvent<'run'>['state']): void {
  const { stream_id: id } = stored;
  if (stored.type === 'RunCreated') {
    openInterval(rows, id, stored.data);
    return;
  }
  if (!changesInterval(stored)) return;
  const run = existingRun(state);
  const { batch_export_id, data_interval_start, data_interval_end } = run.spec;
  const row = rows.get(table, batch_export_id, data_interval_start, data_interval_end);
  if (!row) return;
  switch (stored.type) {
    case 'RunCompleted':
      rows.change(table, row, {
        ...manifestColumns(run, stored, stored.data.expires_at),
        decision: decisionAfter(row, run),
      });
      return;
    case 'RunUnchanged':
      if (row.run_id === id)
        rows.change(table, row, { status: statusOfManifest(row), reason: null, held: null });
      return;
    case 'RunSettled':
      // What followed once the transactions had ended that the run of the manifest did not wait for.
      if (row.manifest_run_id === id)
        rows.change(table, row, {
          settling_outcome: stored.data.outcome,
          status: row.status === 'unsettled' ? 'exported' : row.status,
        });
      return;
    case 'RunKeyTaken':
      rows.change(table, row, { taken_keys: row.taken_keys + 1 });
      return;
    default: {
      // The newest run ended without a manifest. An earlier manifest stays current.
      const { data } = stored;
      const isRetried = 'retry_delay_seconds' in data && data.retry_delay_seconds !== null;
      const held = 'held' in data && stored.type === 'RunFailed' ? stored.data.held : undefined;
      if (row.run_id === id) rows.change(table, row, endColumns(row, run, isRetried, held));
    }
  }
}

/** What a manifest sets in the row of its interval. */
function manifestColumns(
  run: ExistingRun,
  { stream_id, recorded_at }: StoredStreamEvent<'run'>,
  expires_at: string | null,
): Partial<IntervalRow> {
  const files = filesOf(run);
  const exported = [files.fingerprint, run.rejected_file?.fingerprint].flatMap((rows) => rows ?? []);
  const hash = fingerprintHashOf(run.spec.model);
  const { kept, earlier } = earlierGenerationsOf(run);
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
    source_fingerprint: finishedOf(run) && totalOf(hash, [sourceAfter(run)]),
    bucket_fingerprint: totalOf(hash, exported),
    kept_files: kept.length,
    earlier_files: earlier.length,
    collapsed_generation: null,
    collapsed_config_version: null,
  };
}

/** The decision that holds of the files that a run has published: kept rows are in them if it has only added late ones. */
function decisionAfter({ decision }: IntervalRow, { replacement }: ExistingRun): StoredDecision | null {
  const holds = { keep: 'late_rows_added', remove: 'removal_decided' } as const;
  return decision && replacement?.outcome === holds[decision.decision] ? decision : null;
}

/** The earliest of these times (ISO 8601); null if all are null. */
const earliest = (times: readonly (string | null)[]): string | null =>
  times.filter((time) => time !== null).toSorted((one, other) => Date.parse(one) - Date.parse(other))[0] ??
  null;

/** The status of an interval that only its manifest decides. */
const statusOfManifest = ({
  settled,
  settling_outcome,
}: Pick<IntervalRow, 'settled' | 'settling_outcome'>): 'exported' | 'unsettled' =>
  settled || settling_outcome !== null ? 'exported' : 'unsettled';

/** What a run sets that ended without a manifest. */
function endColumns(
  row: IntervalRow,
  run: ExistingRun,
  isRetried: boolean,
  heldNow: MissingRows | undefined,
): Partial<IntervalRow> {
  // A person ended the run. This says nothing about the rows of an earlier manifest, nor about those that a run was held for.
  const isDeliberate = run.status === 'Cancelled' || run.status === 'Terminated';
  const held = isDeliberate ? row.held : (heldNow ?? null);
  // A removal ends with its run, if that is cancelled or finds other rows.
  const ends = row.decision?.decision === 'remove' && (isDeliberate || held !== null);
  const decision = ends ? null : row.decision;
  const status = (): IntervalRow['status'] => {
    if (isRetried) return 'failed';
    if (held !== null) return 'held';
    if (row.manifest_run_id === null) return 'gap';
    return isDeliberate ? statusOfManifest(row) : 'failed';
  };
  const after = status();
  return { status: after, held, decision, reason: after === 'failed' || after === 'gap' ? run.status : null };
}

/**
 * Makes a new run the newest one of its interval. If the schedule had skipped the interval, the rest of the skipped range
 * keeps its own rows: one before the interval and one after it.
 */
function openInterval(rows: RowCache, run_id: string, spec: RunSpec): void {
  const { batch_export_id, data_interval_start, data_interval_end } = spec;
  const interval = intervalOf(spec);
  const is_scheduled = spec.purpose.kind === 'interval';
  const opened = { status: 'running', reason: null, run_id, taken_keys: 0 } as const;
  const known = rows.get(table, batch_export_id, data_interval_start, data_interval_end);
  splitSkipped(rows, batch_export_id, interval);
  if (known) {
    rows.change(table, known, { ...opened, is_scheduled: known.is_scheduled || is_scheduled });
    return;
  }
  cover(rows, batch_export_id, interval);
  rows.set(table, {
    ...untouched,
    batch_export_id,
    data_interval_start,
    data_interval_end,
    ...opened,
    is_scheduled,
  });
}

const boundsOf = ({ data_interval_start, data_interval_end }: DigestEntry): DataInterval => ({
  start: data_interval_start as string,
  end: data_interval_end as string,
});

/**
 * Writes a row of a digest. After a rebuild it is the first that is known of its interval, so that a range that the schedule
 * skipped is split as the runs had split it.
 */
function foldDigest(rows: RowCache, batch_export_id: string, entry: DigestEntry): void {
  const interval = boundsOf(entry);
  splitSkipped(rows, batch_export_id, interval);
  cover(rows, batch_export_id, interval);
  const columns = Object.fromEntries(ledgerColumns.map((column) => [column, entry[column] ?? null]));
  rows.set(table, { batch_export_id, ...columns } as IntervalRow);
}

/** Takes an interval out of the range that the schedule skipped and that has it. Its own row stays. */
function splitSkipped(rows: RowCache, batchExportId: string, { start, end }: DataInterval): void {
  for (const row of rows.find(table, 'skipped', batchExportId, start, end)) {
    const { data_interval_start: starts, data_interval_end: ends } = row;
    const [isLonger, isShorter] = [
      isBefore(starts, start) || isBefore(end, ends),
      isBefore(start, starts) || isBefore(ends, end),
    ];
    if (isShorter || !isLonger) continue;
    rows.delete(table, row);
    if (isBefore(starts, start)) rows.set(table, { ...row, data_interval_end: start });
    if (isBefore(end, ends)) rows.set(table, { ...row, data_interval_start: end });
  }
}

/** Adds an interval to what the rows of an export cover. */
function cover(rows: RowCache, batch_export_id: string, { start, end }: DataInterval): void {
  const touched = rows.find(coveredTable, 'touching', batch_export_id, start, end);
  if (touched.some(({ starts, ends }) => !isBefore(start, starts) && !isBefore(ends, end))) return;
  let [starts, ends] = [start, end];
  for (const row of touched) {
    rows.delete(coveredTable, row);
    if (isBefore(row.starts, starts)) ({ starts } = row);
    if (isBefore(ends, row.ends)) ({ ends } = row);
  }
  rows.set(coveredTable, { batch_export_id, starts, ends });
}

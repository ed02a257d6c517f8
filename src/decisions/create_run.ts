import { createHash } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import type { BackfillRange } from '../domain/backfill.ts';
import type { LiveBatchExport } from '../domain/batch_export.ts';
import type { ComparisonSchedule } from '../domain/comparison.ts';
import type { FailureTime } from '../domain/errors.ts';
import {
  countIntervals,
  type DataInterval,
  intervalFrom,
  nominalLengthMs,
  type ScheduleRevision,
} from '../domain/intervals.ts';
import { progressForRetry, type RetryPolicy, runDecider } from '../domain/run.ts';
import { activeRunStatuses, type RunDefinition, type RunPurpose } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { deterministicId, type JournalTransaction, writeLogLine } from '../journal/journal.ts';
import { isUncounted } from '../projections/backfills.ts';
import { activeStatuses, isFailedRun } from '../projections/runs.ts';

/** When obsolete objects are deleted and exported intervals are compared with the source. */
export interface MaintenancePolicy {
  /** Milliseconds that objects are kept after a newer generation replaced them in the manifest. */
  readonly oldGenerationRetentionMs: number;
  /** Milliseconds that files are kept after a commit took them from their table. */
  readonly tableFileRetentionMs: number;
  /** Milliseconds that orphaned objects are kept, to which no manifest can refer. */
  readonly orphanRetentionMs: number;
  /** Milliseconds after which an object that cannot be deleted stays permanently. */
  readonly orphanRetryBudgetMs: number;
  /** When exported intervals are compared with the source. */
  readonly comparisons: ComparisonSchedule;
  /** Rows of the source that comparisons read per second. */
  readonly comparisonRowsPerSecond: number;
}

/** The settings that decisions depend on. */
export interface Policies {
  readonly maxConcurrentRuns: number;
  readonly backfillConcurrency: number;
  /** Concurrent runs of the repair of an export. */
  readonly repairConcurrency: number;
  readonly maxBackfillIntervals: number;
  readonly maxBackfillsPerProject: number;
  readonly retry: RetryPolicy;
  /** The number of consecutive Failed runs that pauses an export or a backfill; 0 to never pause. */
  readonly pauseAfterFailures: number;
  readonly maintenance: MaintenancePolicy;
  /** Whether signals that were sent past the API are applied. */
  readonly allowsManualSignals: boolean;
  /** Milliseconds by which the start of an interval's run is delayed; always the same for the same interval. */
  readonly jitterMs: (batchExportId: string, intervalName: string, interval: DataInterval) => number;
}

/** The delay before a run is retried doubles up to this. */
const maxRetryDelaySeconds = 60 * 60;

/** Derives the policies from the settings. */
export function createPolicies(settings: Settings): Policies {
  return {
    maxConcurrentRuns: settings.EXPORTD_MAX_CONCURRENT_RUNS,
    backfillConcurrency: settings.EXPORTD_BACKFILL_CONCURRENCY,
    repairConcurrency: settings.EXPORTD_REPAIR_CONCURRENCY,
    maxBackfillIntervals: settings.EXPORTD_MAX_BACKFILL_INTERVALS,
    maxBackfillsPerProject: settings.EXPORTD_MAX_BACKFILLS_PER_PROJECT,
    retry: {
      initialSeconds: settings.EXPORTD_RUN_RETRY_INITIAL / 1_000,
      maxSeconds: maxRetryDelaySeconds,
      maxRetries: settings.EXPORTD_RUN_RETRY_LIMIT,
    },
    pauseAfterFailures: settings.EXPORTD_PAUSE_AFTER_FAILURES,
    allowsManualSignals: settings.EXPORTD_MANUAL_SIGNALS,
    maintenance: {
      oldGenerationRetentionMs: settings.EXPORTD_OLD_GENERATION_RETENTION,
      tableFileRetentionMs: settings.EXPORTD_TABLE_FILE_RETENTION,
      orphanRetentionMs: settings.EXPORTD_ORPHAN_RETENTION,
      orphanRetryBudgetMs: settings.EXPORTD_ORPHAN_RETRY_BUDGET,
      comparisons: {
        firstMs: settings.EXPORTD_COMPARISON_FIRST,
        maxIntervalMs: settings.EXPORTD_COMPARISON_MAX_INTERVAL,
      },
      comparisonRowsPerSecond: settings.EXPORTD_COMPARISON_ROWS_PER_SECOND,
    },
    jitterMs: (batchExportId, intervalName, interval) => {
      const length = nominalLengthMs(intervalName);
      const hour = 3_600_000;
      const spread =
        length >= hour ? settings.EXPORTD_JITTER_LONG : length * settings.EXPORTD_JITTER_SHORT_FRACTION;
      return Math.floor(spread * stableFraction(`${batchExportId}/${interval.start}`));
    },
  };
}

/** A pseudo-random number in [0, 1) that depends only on the text, so that a repeated decision is the same. */
const stableFraction = (text: string): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;

/**
 * The trace of the command that created a backfill, as a W3C `traceparent`; null without one.
 * @param backfillId an SQL expression
 */
export const backfillTraceParent = (backfillId: string): string => `
  (select command.trace_parent from exportd.journal_events created
   join exportd.commands command
     on command.id = case when created.cause like 'command:%' then substr(created.cause, 9)::uuid end
   where created.stream_type = 'backfill' and created.stream_id = ${backfillId} and created.stream_version = 1)`;

/** SQL condition: the interval of a row has an active run. */
export const hasActiveRun = (row: string): string => `exists (
  select from exportd.batch_export_runs active
  where active.batch_export_id = ${row}.batch_export_id and active.data_interval_start = ${row}.data_interval_start
    and active.status in (${activeStatuses}))`;

/** Returns the id of the interval's active run, or null. An interval has at most one. */
export async function findActiveRun(
  connection: Connection,
  batchExportId: string,
  interval: DataInterval,
): Promise<string | null> {
  const { rows } = await connection.query<{ id: string }>(
    `select id from exportd.batch_export_runs where batch_export_id = $1 and data_interval_start = $2
     and data_interval_end = $3 and status = any($4)`,
    [batchExportId, interval.start, interval.end, activeRunStatuses],
  );
  return rows[0]?.id ?? null;
}

/** A run that is to be created. */
interface NewRun {
  readonly id: string;
  readonly batch_export_id: string;
  readonly interval: DataInterval;
  readonly purpose: RunPurpose;
  readonly allow_shrink: boolean;
  /** The model and config, if not the export's current ones. */
  readonly definition?: RunDefinition | undefined;
}

/** Creates a run of an interval. The caller holds the export's lock. */
export async function createRun(
  transaction: JournalTransaction,
  live: LiveBatchExport,
  { id, batch_export_id, interval, purpose, allow_shrink, definition = live.definition }: NewRun,
): Promise<void> {
  const stream = await transaction.lock(runDecider, id);
  await stream.append('created', [
    {
      type: 'RunCreated',
      data: {
        batch_export_id,
        team_id: live.team_id,
        model: definition.model,
        config_version: definition.config_version,
        data_interval_start: interval.start,
        data_interval_end: interval.end,
        purpose,
        retry_number: 0,
        allow_shrink,
        continues_run_id: null,
      },
    },
  ]);
}

/**
 * Creates the automatic retry of a failed run, with the export's current definition unless the failed one kept another. It
 * resumes from the progress of the failed run if that is safe. If not, and that one was to be cancelled, no run is created.
 * The caller holds the export's lock.
 */
export async function createRetry(
  transaction: JournalTransaction,
  { definition }: Pick<LiveBatchExport, 'definition'>,
  failedRunId: string,
  { id, retry_number }: { readonly id: string; readonly retry_number: number },
): Promise<void> {
  const former = await transaction.lock(runDecider, failedRunId);
  const failed = former.state();
  if (failed.status === 'Absent') return;
  const { purpose } = failed.spec;
  const keepsDefinition = purpose.kind === 'repair' && purpose.definition === 'kept';
  const { model, config_version } = keepsDefinition ? failed.spec : definition;
  const progress = progressForRetry(failed, { run_id: failedRunId, model, config_version });
  if (failed.cancel_requested !== null && !progress) {
    // A run that starts over cannot show whether the failed one has published, and its rows are not wanted.
    await former.append('cancelled', [
      { type: 'RunRetryCancelled', data: { reason: failed.cancel_requested } },
    ]);
    return;
  }
  const stream = await transaction.lock(runDecider, id);
  const spec = { ...failed.spec, model, config_version, retry_number, continues_run_id: null };
  const inherited = progress && { run_id: failedRunId, progress };
  await stream.append('created', [
    { type: 'RunCreated', data: { ...spec, ...(inherited && { inherited }) } },
  ]);
}

/**
 * The number of free slots of a schedule or a backfill. Automatic retries take a slot, and so do the runs of others that
 * a backfill waits for. The retries of a former repair take those of the current one. The caller holds the export's lock.
 */
export async function countFreeSlots(
  connection: Connection,
  policies: Policies,
  { batch_export_id, backfill_id }: { readonly batch_export_id: string; readonly backfill_id: string | null },
): Promise<number> {
  const owned =
    backfill_id === null
      ? 'backfill_id is null'
      : `(backfill_id = $3 or id in
           (select run_id from exportd.backfill_runs waiting where waiting.backfill_id = $3 and status is null)
         or ${isRepair('$3')} and ${isRepair('batch_export_runs.backfill_id')})`;
  const { rows } = await connection.query<{ active: number; is_repair: boolean }>(
    `select count(*) as active, ${backfill_id === null ? 'false' : isRepair('$3')} as is_repair
     from exportd.batch_export_runs where batch_export_id = $1 and status = any($2) and ${owned}`,
    [batch_export_id, activeRunStatuses, ...(backfill_id === null ? [] : [backfill_id])],
  );
  const { active = 0, is_repair = false } = rows[0] ?? {};
  const ofBackfill = is_repair ? policies.repairConcurrency : policies.backfillConcurrency;
  return (backfill_id === null ? policies.maxConcurrentRuns : ofBackfill) - active;
}

/** SQL condition: a backfill is the repair of its export. @param backfillId an SQL expression */
const isRepair = (backfillId: string): string =>
  `exists (select from exportd.backfills owner where owner.id = ${backfillId} and owner.kind = 'repair')`;

/** The number of due automatic retries of a backfill's runs, which take the next free slots. */
export async function countDueRetries(
  connection: Connection,
  backfillId: string,
  now: Date,
): Promise<number> {
  const { rows } = await connection.query<{ due: number }>(
    'select count(*) as due from exportd.batch_export_runs where backfill_id = $1 and retry_at <= $2',
    [backfillId, now],
  );
  return rows[0]?.due ?? 0;
}

/** What starting a run workflow requires. Contains only names and times that a workflow history may contain. */
export interface StartableRun {
  readonly run_id: string;
  readonly batch_export_id: string;
  readonly batch_export_name: string;
  readonly team_id: number;
  readonly model: string;
  readonly destination_type: string;
  readonly interval: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  /** The backfill that created it, or null. */
  readonly backfill_id: string | null;
  /** The trace that it belongs to, as a W3C `traceparent`; null if it has its own. */
  readonly trace_parent: string | null;
}

/**
 * The largest backfill, in intervals, whose runs belong to the trace of the request. Those of a larger one, and scheduled
 * runs, have a trace each.
 */
const maxIntervalsInTrace = 24;

const columns = `run.id as run_id, run.batch_export_id, export.name as batch_export_name, run.team_id, run.model,
  export.destination_type, export.interval, run.data_interval_start, run.data_interval_end, run.backfill_id,
  (select ${backfillTraceParent('backfill.id')} from exportd.backfills backfill
   where backfill.id = run.backfill_id and backfill.total_runs <= ${maxIntervalsInTrace}) as trace_parent`;

/**
 * Reads the runs that were created and not started. They are read from the read model, not returned by the step that
 * created them: if the result of that step is lost, the next step still starts them. Starting a run twice is harmless.
 */
export async function readStartableRuns(
  pool: Pool,
  of: { readonly batch_export_id: string } | { readonly backfill_id: string },
): Promise<StartableRun[]> {
  const [condition, id] =
    'backfill_id' in of
      ? ['run.backfill_id = $1 and run.retry_number = 0', of.backfill_id]
      : [
          'run.batch_export_id = $1 and (run.backfill_id is null or run.retry_number > 0)',
          of.batch_export_id,
        ];
  const { rows } = await pool.query<StartableRun>(
    `select ${columns} from exportd.batch_export_runs run
     join exportd.batch_exports export on export.id = run.batch_export_id
     where ${condition} and run.status = 'Starting' order by run.position`,
    [id],
  );
  return rows;
}

/**
 * Reads the backfills of an export that may have no workflow yet, for the same reason: none of their runs has started.
 * After 5 minutes the reconciler has started them, so older ones are left out.
 */
export async function readUnstartedBackfills(pool: Pool, batchExportId: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select id from exportd.backfills backfill where batch_export_id = $1 and finished_at is null
     and created_at > clock_timestamp() - interval '5 minutes' and not exists (
       select from exportd.batch_export_runs run where run.backfill_id = backfill.id and run.status <> 'Starting')
     order by position`,
    [batchExportId],
  );
  return rows.map(({ id }) => id);
}

/** Reads one run, whatever its status. */
export async function readStartableRun(pool: Pool, runId: string): Promise<StartableRun | undefined> {
  return (await readRuns(pool, [runId]))[0];
}

/** Reads runs by id, whatever their status. */
export async function readRuns(pool: Pool, runIds: readonly string[]): Promise<StartableRun[]> {
  if (runIds.length === 0) return [];
  const { rows } = await pool.query<StartableRun>(
    `select ${columns} from exportd.batch_export_runs run
     join exportd.batch_exports export on export.id = run.batch_export_id where run.id = any($1)`,
    [runIds],
  );
  return rows;
}

/**
 * SQL condition on the table alias `run`, a run of an export: the schedule wants it, or a backfill whose status is none
 * of `ended`. A backfill wants the runs that it created and those that it waits for, with their automatic retries, which
 * belong to the backfill that created the first of them.
 */
const isWanted = (ended: readonly ('Cancelled' | 'Paused')[]): string => {
  const wants = (backfill: string) =>
    `${backfill}.status not in (${ended.map((status) => `'${status}'`).join(', ')})`;
  return `(run.backfill_id is null or run.adopted_by_schedule
    or exists (select from exportd.backfills owner where owner.id = run.backfill_id and ${wants('owner')})
    or exists (
      select from exportd.batch_export_runs former
      join exportd.backfill_runs waiting on waiting.run_id = former.id and ${isUncounted('waiting')}
      join exportd.backfills other on other.id = waiting.backfill_id and ${wants('other')}
      where former.batch_export_id = run.batch_export_id and former.data_interval_start = run.data_interval_start
        and former.data_interval_end = run.data_interval_end and former.backfill_id = run.backfill_id
        and former.position <= run.position))`;
};

/** SQL condition: the schedule or a backfill still wants the run `run`. Otherwise it ends, and is not retried. */
export const isWantedRun = isWanted(['Cancelled']);

/** SQL condition: a schedule or backfill that is not paused wants the run `run`, so that its automatic retry may start. */
const isRetryableRun = isWanted(['Cancelled', 'Paused']);

/**
 * SQL condition: rules of the bucket may have deleted objects of a row's interval, so that it is exported again only
 * when a person requests it. The rule of `isExpired` (src/domain) for the first object that expires.
 * @param condition a further condition on the first expiration
 */
export const isExpiredInterval = (row: string, condition = ''): string => `exists (
  select from exportd.intervals interval join exportd.batch_exports owner on owner.id = interval.batch_export_id
  where interval.batch_export_id = ${row}.batch_export_id
    and interval.data_interval_start = ${row}.data_interval_start
    and interval.data_interval_end = ${row}.data_interval_end
    and ${expiration} <= clock_timestamp() ${condition})`;

/** SQL: when the first object of an interval expires. */
const expiration =
  'least(interval.expires_at, interval.completed_at + make_interval(days => owner.retention_days))';

/** An interval that needs a run, or that has one already. */
export interface NextInterval {
  readonly interval: DataInterval;
  readonly run_id: string | null;
}

/**
 * SQL: the newest runs of intervals of the export $1 at the time $3, if they failed at or after $2. Later runs do not
 * change it, so the intervals of a recovery stay the same while it runs.
 */
const failedRuns = `exportd.batch_export_runs run
  where run.batch_export_id = $1 and ${isFailedRun('run')}
    and run.finished_at >= coalesce($2, '-infinity'::timestamptz) and run.finished_at <= $3
    and not exists (
      select from exportd.batch_export_runs newer where newer.batch_export_id = $1
        and newer.data_interval_start = run.data_interval_start and newer.data_interval_end = run.data_interval_end
        and newer.position > run.position and newer.created_at <= $3)`;

const parametersOf = (batchExportId: string, { since, until }: FailureTime) => [batchExportId, since, until];

/** Finds the bounds and the number of the intervals whose newest run failed; undefined if there is none. */
export async function findFailedIntervals(
  connection: Connection,
  batchExportId: string,
  failed: FailureTime,
): Promise<BackfillRange | undefined> {
  const { rows } = await connection.query<{ intervals: number; start: string | null; end: string | null }>(
    `select count(*) as intervals, min(run.data_interval_start) as start, max(run.data_interval_end) as end
     from ${failedRuns}`,
    parametersOf(batchExportId, failed),
  );
  const { intervals = 0, start = null, end = null } = rows[0] ?? {};
  return start === null || end === null ? undefined : { intervals, start, end };
}

/** Finds the next of these intervals within a range, and its newest run if that was created since. */
export async function nextFailedInterval(
  connection: Connection,
  batchExportId: string,
  failed: FailureTime,
  range: DataInterval,
): Promise<NextInterval | undefined> {
  const { rows } = await connection.query<DataInterval & { run_id: string | null }>(
    `select failed.*, (
         select newer.id from exportd.batch_export_runs newer where newer.batch_export_id = $1
           and newer.data_interval_start = failed.start and newer.data_interval_end = failed.end
           and newer.created_at > $3
         order by newer.position desc limit 1) as run_id
     from (
       select run.data_interval_start as start, run.data_interval_end as end from ${failedRuns}
         and run.data_interval_start >= $4 and run.data_interval_start < $5
       order by run.data_interval_start limit 1) failed`,
    [...parametersOf(batchExportId, failed), range.start, range.end],
  );
  const [next] = rows;
  return next && { interval: { start: next.start, end: next.end }, run_id: next.run_id };
}

/**
 * Reads the live exports of a project that have failed runs since a time, or ever, and those whose command an earlier
 * request stored under their key.
 */
export async function readExportsToRetry(
  pool: Pool,
  teamId: number,
  { since, batchExportId }: { readonly since: string | null; readonly batchExportId: string | null },
  keyOf: (batchExportId: string) => string | undefined,
): Promise<string[]> {
  const { rows } = await pool.query<{ id: string; failed: boolean }>(
    `select export.id, exists (
         select from exportd.batch_export_runs run where run.batch_export_id = export.id and ${isFailedRun('run')}
           and run.finished_at >= coalesce($2, '-infinity'::timestamptz)) as failed
     from exportd.batch_exports export where export.team_id = $1 and not export.deleted and coalesce(export.id = $3, true)
     order by export.created_at, export.id`,
    [teamId, since, batchExportId],
  );
  const keys = new Map(rows.map(({ id }) => [id, keyOf(id)]));
  const stored = await pool.query<{ batch_export_id: string }>(
    'select batch_export_id from exportd.commands where team_id = $1 and idempotency_key = any($2)',
    [teamId, [...keys.values()].filter((key) => key !== undefined)],
  );
  const requested = new Set(stored.rows.map(({ batch_export_id }) => batch_export_id));
  return rows.filter(({ id, failed }) => failed || requested.has(id)).map(({ id }) => id);
}

interface FailedRun {
  readonly id: string;
  readonly start: string;
  readonly end: string;
  readonly batch_export_id: string;
  readonly backfill_id: string | null;
  readonly retry_number: number;
  /** Whether its destination did not respond in its time. Then its retry has the same number. */
  readonly in_outage: boolean;
  /** Whether the interval has expired since the run was created. One that expired before was requested by a person. */
  readonly has_expired: boolean;
}

/**
 * Creates the due automatic retries of an export, oldest interval first, within the free slots of the schedule or
 * backfill that owns the failed run. Intervals that have expired since are not exported again. Retries of a paused or
 * cancelled backfill wait, unless the schedule or another backfill wants the run too. The caller holds the export's lock.
 * @returns when the next retry is due; null if there is none or the due ones wait for a slot.
 */
export async function createDueRetries(
  transaction: JournalTransaction,
  policies: Policies,
  batchExportId: string,
  live: LiveBatchExport,
): Promise<Date | null> {
  const { connection, now } = transaction;
  const maxSlots = Math.max(policies.maxConcurrentRuns, policies.backfillConcurrency);
  // Cached per owner.
  const slots = new Map<string | null, number>();
  for (const run of await dueRetries(connection, batchExportId, now, maxSlots)) {
    if (run.has_expired) {
      await cancelExpiredRetry(transaction, live, run);
      continue;
    }
    const free = slots.get(run.backfill_id) ?? (await countFreeSlots(connection, policies, run));
    slots.set(run.backfill_id, free - 1);
    if (free <= 0) continue;
    await createRetry(transaction, live, run.id, {
      id: deterministicId('retry', run.id),
      retry_number: run.in_outage ? Math.max(1, run.retry_number) : run.retry_number + 1,
    });
  }
  return nextRetryAt(connection, batchExportId, now);
}

/** Failed runs with a pending retry, without those whose backfills are all paused or cancelled; $1 is the export. */
const runsAwaitingRetry = `from exportd.batch_export_runs run
  where run.batch_export_id = $1 and run.retry_at is not null and ${isRetryableRun}`;

/**
 * Reads the failed runs whose retry is due and whose interval has no active run, oldest interval first, at most
 * `maxSlots` per owner: thousands may be due after a long outage.
 */
async function dueRetries(
  connection: Connection,
  batchExportId: string,
  now: Date,
  maxSlots: number,
): Promise<FailedRun[]> {
  const { rows } = await connection.query<FailedRun>(
    `select id, batch_export_id, data_interval_start as start, data_interval_end as end, backfill_id, retry_number,
       in_outage, ${isExpiredInterval('due', `and ${expiration} > due.created_at`)} as has_expired
     from (
       select run.*, row_number() over (partition by run.backfill_id order by run.data_interval_start, run.position) as rank
       ${runsAwaitingRetry} and run.retry_at <= $2 and not exists (
         select from exportd.batch_export_runs active where active.batch_export_id = $1
           and active.data_interval_start = run.data_interval_start
           and active.data_interval_end = run.data_interval_end and active.status in (${activeStatuses}))) due
     where rank <= $3 order by data_interval_start, position`,
    [batchExportId, now, maxSlots],
  );
  return rows;
}

/** Cancels the retry of a run whose interval expired: only a person may have it exported again. */
async function cancelExpiredRetry(
  transaction: JournalTransaction,
  { team_id }: LiveBatchExport,
  { id, batch_export_id, start, end }: FailedRun,
): Promise<void> {
  const reason = 'rules of the bucket have deleted objects of the interval since the run was created';
  const run = await transaction.lock(runDecider, id);
  await run.append('expired', [{ type: 'RunRetryCancelled', data: { reason } }]);
  await writeLogLine(transaction.connection, {
    team_id,
    batch_export_id,
    run_id: id,
    level: 'WARNING',
    message: `Not retried: ${reason}. Backfill ${start} to ${end} to export it.`,
  });
}

/** When the next retry that is not due yet becomes due. */
async function nextRetryAt(connection: Connection, batchExportId: string, now: Date): Promise<Date | null> {
  const { rows } = await connection.query<{ retry_at: string }>(
    `select run.retry_at ${runsAwaitingRetry} and run.retry_at > $2 order by run.retry_at limit 1`,
    [batchExportId, now],
  );
  return rows[0] ? new Date(rows[0].retry_at) : null;
}

/**
 * Cancels the automatic retries that neither the schedule nor a backfill wants any more. The caller holds the export's
 * lock.
 */
export async function cancelUnwantedRetries(
  transaction: JournalTransaction,
  batchExportId: string,
  { cause, reason }: { readonly cause: string; readonly reason: string },
): Promise<void> {
  const { rows } = await transaction.connection.query<{ id: string }>(
    `select id from exportd.batch_export_runs run
     where batch_export_id = $1 and retry_at is not null and not ${isWantedRun} order by id`,
    [batchExportId],
  );
  for (const { id } of rows) {
    const run = await transaction.lock(runDecider, id);
    await run.append(cause, [{ type: 'RunRetryCancelled', data: { reason } }]);
  }
}

// The rules of time zones change with a new version of Node.js, also for the past. Boundaries that were computed once are in
// the ledger and in manifests: an interval that is cut elsewhere would export rows of another one again.

/** An export, and the revisions by which the intervals are cut that the ledger does not have. */
interface IntervalSource {
  readonly batchExportId: string;
  readonly revisions: readonly ScheduleRevision[];
}

/**
 * The interval of an export that starts at a boundary, or, if the ledger has an interval that contains the boundary, the one
 * after it. An interval of the ledger keeps its bounds; another one ends where one of the ledger starts.
 */
export async function findIntervalFrom(
  connection: Connection,
  { batchExportId, revisions }: IntervalSource,
  boundary: string,
): Promise<DataInterval> {
  for (let start = boundary; ;) {
    const computed = intervalFrom(revisions, new Date(start));
    const { rows } = await connection.query<{ within: DataInterval | null; next: string | null }>({
      name: 'recorded-intervals',
      text: `select ${containing('$2')} as within, (
          select data_interval_start from exportd.intervals
          where batch_export_id = $1 and run_id is not null and data_interval_start > $2 and data_interval_start < $3
          order by data_interval_start limit 1) as next`,
      values: [batchExportId, start, computed.end],
    });
    const { within = null, next = null } = rows[0] ?? {};
    if (within === null) return next === null ? computed : { start, end: next };
    if (Date.parse(within.start) === Date.parse(start)) return within;
    start = within.end;
  }
}

/**
 * Corrects the whole intervals of a requested range by the ledger: at its ends the intervals of the ledger keep their bounds,
 * and those that the request does not touch are left out.
 * @param range the request, and its whole intervals as they are computed
 */
export async function toRecordedRange(
  database: Connection | Pool,
  { batchExportId, revisions }: IntervalSource,
  range: BackfillRange & { readonly start_at: string; readonly end_at: string },
): Promise<BackfillRange> {
  const instantBefore = (time: string): string => `${time}::timestamptz - interval '1 millisecond'`;
  const ends = await database.query<Record<'first' | 'before' | 'last' | 'after', DataInterval | null>>(
    `select ${containing('$2::timestamptz')} as first, ${containing('$3::timestamptz')} as before,
       ${containing(instantBefore('$4'))} as last, ${containing(instantBefore('$5'))} as after`,
    [batchExportId, range.start_at, range.start, range.end_at, range.end],
  );
  const { first, before, last, after } = ends.rows[0] ?? {};
  const start = first?.start ?? before?.end ?? range.start;
  const end = last?.end ?? after?.start ?? range.end;
  const { rows } = await database.query<DataInterval & { recorded: boolean }>(
    `select starts as start, ends as end, recorded from (
       select lag(data_interval_end, 1, $2) over in_order as starts, data_interval_start as ends, false as recorded
       from (select data_interval_start, data_interval_end from exportd.intervals
         where batch_export_id = $1 and run_id is not null and data_interval_start >= $2 and data_interval_end <= $3
         union all select $3, $3) as inside window in_order as (order by data_interval_start)
       union all
       select null, null, true from exportd.intervals
       where batch_export_id = $1 and run_id is not null and data_interval_start >= $2 and data_interval_end <= $3
     ) part where recorded or starts < ends`,
    [batchExportId, start, end],
  );
  const intervals = rows.reduce(
    (sum, { recorded, ...hole }) => sum + (recorded ? 1 : countIntervals(revisions, hole)),
    0,
  );
  return { start, end, intervals };
}

/** SQL: the interval of export $1 in the ledger that contains an instant, as JSON; null if none does. */
const containing = (instant: string): string => `(
  select case when last.data_interval_end > ${instant} then
      jsonb_build_object('start', ${isoOf('last.data_interval_start')}, 'end', ${isoOf('last.data_interval_end')}) end
  from (select data_interval_start, data_interval_end from exportd.intervals
    where batch_export_id = $1 and run_id is not null and data_interval_start <= ${instant}
    order by data_interval_start desc, data_interval_end desc limit 1) as last)`;

const isoOf = (time: string): string =>
  `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

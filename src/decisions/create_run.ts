import { createHash } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import type { LiveBatchExport } from '../domain/batch_export.ts';
import type { ComparisonSchedule } from '../domain/comparison.ts';
import { type DataInterval, nominalLengthMs } from '../domain/intervals.ts';
import { progressForRetry, type RetryPolicy, runDecider } from '../domain/run.ts';
import { activeRunStatuses, type RunDefinition, type RunSpec } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { JournalTransaction } from '../journal/journal.ts';

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

/**
 * Creates a run of an interval with the export's current definition, or with `definition`, which retries of the run keep.
 * The caller holds the export's lock.
 */
export async function createRun(
  transaction: JournalTransaction,
  live: LiveBatchExport,
  run: {
    readonly id: string;
    readonly batch_export_id: string;
    readonly interval: DataInterval;
    readonly backfill_id: string | null;
    readonly retry_number: number;
    readonly allow_shrink: boolean;
    readonly definition?: RunDefinition | undefined;
    /**
     * The failed run that it retries, and whose progress it resumes from if that is safe. If not, and the failed run was to be
     * cancelled, no run is created.
     */
    readonly retry_of_run_id?: string;
  },
): Promise<void> {
  const retryOf = run.retry_of_run_id;
  const former = retryOf === undefined ? undefined : await transaction.lock(runDecider, retryOf);
  const state = former?.state();
  const failed = state && state.status !== 'Absent' ? state : undefined;
  const kept = run.definition ?? (failed?.spec.keeps_definition ? failed.spec : undefined);
  const { model, config_version } = kept ?? live.definition;
  const progress =
    failed && retryOf !== undefined && !(await wasErasedSince(transaction, live.team_id, failed.created_at))
      ? progressForRetry(failed, { run_id: retryOf, model, config_version })
      : undefined;
  const inherited = progress && retryOf !== undefined && { run_id: retryOf, progress };
  if (former && failed?.cancel_requested && !inherited) {
    // A run that starts over cannot show whether the failed one has published, and nobody wants its rows.
    await former.append('cancelled', [
      { type: 'RunRetryCancelled', data: { reason: failed.cancel_requested } },
    ]);
    return;
  }
  const stream = await transaction.lock(runDecider, run.id);
  await stream.append('created', [
    {
      type: 'RunCreated',
      data: {
        batch_export_id: run.batch_export_id,
        team_id: live.team_id,
        model,
        config_version,
        data_interval_start: run.interval.start,
        data_interval_end: run.interval.end,
        backfill_id: run.backfill_id,
        retry_number: run.retry_number,
        allow_shrink: run.allow_shrink,
        continues_run_id: null,
        ...(kept && { keeps_definition: true }),
        ...(inherited && { inherited }),
      },
    },
  ]);
}

/** Whether persons were erased from a project since a run was created: its files may have their rows. */
async function wasErasedSince(
  { connection }: JournalTransaction,
  teamId: number,
  time: string,
): Promise<boolean> {
  const { rows } = await connection.query(
    'select from exportd.erasures where team_id = $1 and created_at >= $2 limit 1',
    [teamId, time],
  );
  return rows.length > 0;
}

/**
 * The number of free slots of a schedule or a backfill. Automatic retries take a slot, and so do the runs of others that
 * a backfill waits for. The retries of a former repair take those of the current one. The caller holds the export's lock.
 */
export async function countFreeSlots(
  connection: Connection,
  policies: Policies,
  { batch_export_id, backfill_id }: Pick<RunSpec, 'batch_export_id' | 'backfill_id'>,
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
  `exists (select from exportd.backfills owner where owner.id = ${backfillId} and owner.is_repair)`;

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

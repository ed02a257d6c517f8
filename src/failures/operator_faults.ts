import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Settings } from '../config/settings.ts';
import { activeRunStatuses } from '../domain/run_state.ts';
import {
  connectionErrorCode,
  findPooler,
  isDatabaseUnavailable,
  type Pool,
  type PoolMode,
} from '../journal/database.ts';
import { sourceUnavailable } from '../projections/export_conditions.ts';
import { SourceBusy, type SourceMonitor } from '../source/source_connection.ts';
import { classifyError, poolerAdvice } from './classify_error.ts';
import { rejectionIn, rejectionMessages } from './grpc_errors.ts';
import { deterministicId } from '../journal/journal.ts';
import type { Logger } from '../telemetry/logger.ts';
import { workerSilenceMs } from '../domain/condition_facts.ts';

/** An operator's fault. Errors with the same type and message have one cause. */
export interface OperatorFault {
  readonly type: string;
  /** A message for users and for the operator. */
  readonly message: string;
}

export const causeOf = ({ type, message }: OperatorFault): string => `${type}: ${message}`;

/** What all exports need. */
type Dependency = 'source' | 'temporal' | 'workers';

/** An open fault, which concerns all exports that need the same thing. */
export interface OpenFault extends OperatorFault {
  readonly id: string;
  /** Of this opening, until its end. */
  readonly incident_id: string;
  /** The server whose outage it is; null if it is another fault. */
  readonly dependency: Dependency | null;
  readonly opened_at: string;
  readonly last_seen_at: string;
  /** Host and process id of the worker that saw it last: some faults are of one machine. */
  readonly last_seen_by: string;
  /** Active runs that wait for it. During the outage of a dependency all do. */
  readonly waiting_runs: number;
}

/** A fault that has begun, or that is over. */
type FaultChange = OpenFault & { readonly resolved_at?: string };

/** Tells the operator of a fault, or of its end. */
export interface FaultSender {
  /** Limit of one message, in milliseconds. */
  readonly timeoutMs: number;
  /** Sends a message once. @param id the same for each attempt */
  send(id: string, fault: FaultChange): Promise<{ readonly delivered: boolean; readonly detail: string }>;
}

const worker = `${hostname()}:${process.pid}`;

/**
 * Opens a fault, unless it is open, and returns its incident and whether it was opened. Its parameters are `valuesOf` the fault. A
 * run that meets the outage of a dependency has the same type and message, so that both are one fault.
 */
const openFault = `insert into exportd.operator_faults as fault (id, type, message, last_seen_by, dependency, opened_at, last_seen_at)
  select $1::uuid, $2, $3, $4, $5, now, now from clock_timestamp() as now
  on conflict (id) do update set last_seen_at = excluded.last_seen_at, last_seen_by = excluded.last_seen_by,
    dependency = case when fault.resolved_at is null then coalesce(excluded.dependency, fault.dependency) else excluded.dependency end,
    opened_at = case when fault.resolved_at is null then fault.opened_at else excluded.opened_at end,
    incident_id = case when fault.resolved_at is null then fault.incident_id else excluded.incident_id end,
    notified_at = case when fault.resolved_at is null then fault.notified_at end,
    end_notified_at = null, resolved_at = null
  returning id, incident_id, opened_at = last_seen_at as is_new`;

const valuesOf = (fault: OperatorFault, dependency: Dependency | null = null): (string | null)[] => [
  deterministicId('operator_fault', causeOf(fault)),
  fault.type,
  fault.message,
  worker,
  dependency,
];

/** Whether a fault was open before, and the id of its incident. */
interface OpenedFault {
  readonly incident_id: string;
  readonly is_new: boolean;
}

/** Logs an incident that has begun: one line, whatever number of workers and runs meet it. */
function logOpening(logger: Logger, { type, message }: OperatorFault, { incident_id, is_new }: OpenedFault) {
  if (is_new) logger.error({ operator_fault: type, incident_id }, `The operator has to act: ${message}`);
}

/** Stores a fault that a process has found outside of any run. */
export async function storeProcessFault(
  pool: Pool,
  fault: OperatorFault,
  dependency: Dependency | null = null,
): Promise<OpenedFault | undefined> {
  const { rows } = await pool.query<OpenedFault>(openFault, valuesOf(fault, dependency));
  return rows[0];
}

/** The same, with a line of the log when it is opened. */
async function reportFault(
  pool: Pool,
  logger: Logger,
  fault: OperatorFault,
  dependency: Dependency | null = null,
): Promise<void> {
  const opened = await storeProcessFault(pool, fault, dependency);
  if (opened) logOpening(logger, fault, opened);
}

/** Stores that a run tried and failed, which opens the fault unless it is open. */
export async function storeFault(
  pool: Pool,
  logger: Logger,
  runId: string,
  fault: OperatorFault,
): Promise<void> {
  const { rows } = await pool.query<OpenedFault>(
    `with seen as (${openFault}), waits as (
       insert into exportd.operator_fault_runs as waiting (run_id, fault_id) select $6, id from seen
       on conflict (run_id) do update set fault_id = excluded.fault_id, resumed_at = null, renewed_execution = null,
         waiting_since = case when waiting.resumed_at is null and waiting.fault_id = excluded.fault_id
           then waiting.waiting_since else clock_timestamp() end)
     select incident_id, is_new from seen`,
    [...valuesOf(fault), runId],
  );
  for (const opened of rows) logOpening(logger, fault, opened);
}

/** Stores that a run waits no longer. Its row stays, so that its time limits can be renewed. */
export async function storeResumption(pool: Pool, runId: string): Promise<void> {
  await pool.query(
    `update exportd.operator_fault_runs set resumed_at = clock_timestamp()
     where run_id = $1 and resumed_at is null`,
    [runId],
  );
}

/** SQL: the members of an `OpenFault`. An outage concerns all active runs. */
const openFaultColumns = `id, incident_id, type, message, dependency, opened_at, last_seen_at, last_seen_by,
  case when dependency is not null
    then (select count(*) from exportd.batch_export_runs
      where status in (${activeRunStatuses.map((status) => `'${status}'`).join(', ')}))
    else (select count(*) from exportd.operator_fault_runs where fault_id = fault.id and resumed_at is null)
  end as waiting_runs`;

/** Reads the open faults, oldest first. */
export async function readOpenFaults(pool: Pool): Promise<OpenFault[]> {
  const { rows } = await pool.query<OpenFault>(
    `select ${openFaultColumns}
     from exportd.operator_faults fault where resolved_at is null order by opened_at, id`,
  );
  return rows;
}

/** A fault that is over, and its incident. */
interface EndedFault extends OperatorFault {
  readonly incident_id: string;
}

/** SQL: the members of an `EndedFault`. */
const endedFaultColumns = 'type, message, incident_id';

function logEnds(logger: Logger, faults: readonly EndedFault[]): void {
  for (const { type, message, incident_id } of faults)
    logger.info({ operator_fault: type, incident_id }, `This is over: ${message}`);
}

/** Stores whether this process has an outage, which opens its fault or resolves the one that the process has seen last. */
async function storeOutage(
  pool: Pool,
  logger: Logger,
  dependency: Dependency,
  fault: OperatorFault | undefined,
): Promise<void> {
  if (fault) await reportFault(pool, logger, fault, dependency);
  const { rows } = await pool.query<EndedFault>(
    `update exportd.operator_faults set resolved_at = clock_timestamp()
     where dependency = $3 and resolved_at is null and last_seen_by = $1 and id is distinct from $2
     returning ${endedFaultColumns}`,
    [worker, fault ? deterministicId('operator_fault', causeOf(fault)) : null, dependency],
  );
  logEnds(logger, rows);
}

/** Workers that have not reported for this time are forgotten. */
const forgottenAfter = `interval '1 day'`;

/** The export slots of a worker. */
interface ReportedSlots {
  use(): { readonly slots: number };
  /** Whether none has been free for some seconds. */
  areTaken(): boolean;
}

/** Stores that this worker runs, and whether it has a free slot. */
async function storeHeartbeat(pool: Pool, slots: ReportedSlots | undefined): Promise<void> {
  await pool.query(
    `insert into exportd.worker_heartbeats as heartbeat (worker, export_slots, slots_taken_at)
     values ($1, $2, case when $3 then clock_timestamp() end)
     on conflict (worker) do update set seen_at = clock_timestamp(), export_slots = excluded.export_slots,
       slots_taken_at = coalesce(excluded.slots_taken_at, heartbeat.slots_taken_at)`,
    [worker, slots?.use().slots ?? 0, slots?.areTaken() ?? false],
  );
  await pool.query(
    `delete from exportd.worker_heartbeats where seen_at < clock_timestamp() - ${forgottenAfter}
       and worker <> $1`,
    [worker],
  );
}

/** Resolves the faults that no worker has seen for `unseenMs`, and forgets the waits of runs that have ended. */
export async function resolveFaults(pool: Pool, logger: Logger, unseenMs: number): Promise<void> {
  await pool.query(
    `delete from exportd.operator_fault_runs waiting where not exists (
       select from exportd.batch_export_runs run
       where run.id = waiting.run_id and run.status in ('Starting', 'Running'))`,
  );
  const { rows } = await pool.query<EndedFault>(
    `update exportd.operator_faults set resolved_at = clock_timestamp()
     where resolved_at is null and last_seen_at < clock_timestamp() - $1 * interval '1 millisecond'
     returning ${endedFaultColumns}`,
    [unseenMs],
  );
  logEnds(logger, rows);
}

/**
 * Takes a fault that has been open for `minOpenMs` and that the operator has not been notified of, for as long as one
 * request may take. Of several workers, one takes it.
 */
async function takeUnnotifiedFault(
  pool: Pool,
  { minOpenMs, leaseMs }: { readonly minOpenMs: number; readonly leaseMs: number },
): Promise<OpenFault | undefined> {
  const { rows } = await pool.query<OpenFault>(
    `update exportd.operator_faults fault set notify_after = clock_timestamp() + $1 * interval '1 millisecond'
     where id = (
       select id from exportd.operator_faults
       where resolved_at is null and notified_at is null and notify_after <= clock_timestamp()
         and last_seen_at - opened_at >= $2 * interval '1 millisecond'
       order by opened_at limit 1 for update skip locked)
     returning ${openFaultColumns}`,
    [leaseMs, minOpenMs],
  );
  return rows[0];
}

/**
 * Renews the time limits of a run that waited for the operator in one of its executions, so that the wait uses up neither
 * its retry budget nor its automatic retries. Once per wait; a repeated call for the same execution has the same result.
 * @returns whether the run continues in a new execution instead of ending as FailedRetryable or TimedOut
 */
export async function renewTimeLimits(pool: Pool, runId: string, executionId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update exportd.operator_fault_runs set renewed_execution = $2
     where run_id = $1 and coalesce(renewed_execution, $2) = $2`,
    [runId, executionId],
  );
  return rowCount === 1;
}

type FaultAlarmSettings = Pick<Settings, 'EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL' | 'EXPORTD_LOG_RETENTION'>;

/** Waiting runs try again within two intervals, so a fault that no worker has seen for this many is fixed. */
const unseenIntervals = 3;
/** A check at least this often, in milliseconds. */
const maxCheckIntervalMs = 5_000;
/** Lease beyond the timeout of one request, after which another worker retries the notification. */
const notificationPauseMs = 10_000;

/** A check of the source that takes longer has failed, in milliseconds. */
const sourceTimeoutMs = 4_000;

/** Why this process cannot read the source; undefined if it can, or if its own statements use all connections. */
async function checkSource(source: Pick<SourceMonitor, 'ping'>): Promise<OperatorFault | undefined> {
  const signal = AbortSignal.timeout(sourceTimeoutMs);
  try {
    await source.ping(signal);
    return undefined;
  } catch (error) {
    return error instanceof SourceBusy ? undefined : sourceFaultOf(error);
  }
}

/**
 * Why the source cannot be read. What the operator has to fix is the fault that runs meet too. The message has no address: owners of
 * exports read it.
 */
export function sourceFaultOf(error: unknown): OperatorFault {
  const { type, owner, message } = classifyError(error);
  if (owner === 'operator') return { type, message };
  const refuses = error instanceof Error && connectionErrorCode(error) === 'ECONNREFUSED';
  return {
    type: sourceUnavailable,
    message: refuses ? 'The source refuses connections.' : 'The source does not respond.',
  };
}

/**
 * Reports that this worker runs, and whether it has a free slot and can read the source; resolves faults that no worker sees
 * any more, and notifies the operator once of each open one. All workers check; the database lets one of them act. `stop`
 * waits for the check that is running.
 */
export function createFaultAlarm(
  pool: Pool,
  settings: FaultAlarmSettings,
  logger: Logger,
  sender: FaultSender | undefined,
  source?: Pick<SourceMonitor, 'ping'>,
  slots?: ReportedSlots,
) {
  const interval = settings.EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL;
  let pooler: PoolMode | null | undefined;

  return repeat(settings, async () => {
    try {
      await storeHeartbeat(pool, slots);
      if (source) await storeOutage(pool, logger, 'source', await checkSource(source));
      if (pooler === undefined) pooler = await findPooler(pool);
      if (pooler === 'transaction') await reportFault(pool, logger, sessionsShared);
      await resolveFaults(pool, logger, interval * unseenIntervals);
      await pool.query(
        `delete from exportd.operator_faults where resolved_at < clock_timestamp() - $1 * interval '1 millisecond'`,
        [settings.EXPORTD_LOG_RETENTION],
      );
      await notifyOperator(pool, settings, logger, sender);
    } catch (error) {
      logger.warn({ err: error }, "Operator's faults could not be checked. Trying again.");
    }
  });
}

/** Repeats a check from `start` on. `stop` waits for the one that is running. */
function repeat(
  { EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL: interval }: FaultAlarmSettings,
  check: (stopping: AbortSignal) => Promise<void>,
) {
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  const stopping = new AbortController();
  const start = (): void => {
    running = check(stopping.signal).then(() => {
      if (!stopping.signal.aborted) timer = setTimeout(start, Math.min(interval, maxCheckIntervalMs));
    });
  };
  return {
    start,
    stop: async (): Promise<void> => {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
}

const databaseDown: OperatorFault = {
  type: 'ControlDatabaseUnavailable',
  message: 'The control database does not respond.',
};
const temporalGone: OperatorFault = { type: 'TemporalUnavailable', message: 'Temporal does not respond.' };
const workersGone: OperatorFault = { type: 'NoWorker', message: 'No worker of exportd has reported.' };

/** A request to Temporal that takes longer has failed, in milliseconds. */
const temporalTimeoutMs = 4_000;

/**
 * Watches from a server what workers cannot tell: that Temporal does not respond, that no worker reports, and that the
 * control database does not respond. The first two are faults that all servers share, so that one of them notifies the
 * operator. The third cannot be stored: each server notifies the operator by itself, with an id of its own.
 * @param pingTemporal rejects when Temporal does not respond, and at once when the signal is aborted
 */
export function createServerAlarm(
  pool: Pool,
  settings: FaultAlarmSettings,
  logger: Logger,
  sender: FaultSender | undefined,
  pingTemporal: (signal: AbortSignal) => Promise<unknown>,
) {
  /** The outage of the control database, as this server sees it. */
  let outage: { readonly fault: OpenFault; isNotified: boolean } | undefined;
  const watchDatabase = async (responds: boolean): Promise<void> => {
    const now = new Date().toISOString();
    if (!responds) {
      const opened = outage?.fault ?? {
        ...databaseDown,
        id: deterministicId('operator_fault', `${causeOf(databaseDown)} ${worker}`),
        incident_id: randomUUID(),
        dependency: null,
        opened_at: now,
        last_seen_at: now,
        last_seen_by: worker,
        waiting_runs: 0,
      };
      outage = { fault: { ...opened, last_seen_at: now }, isNotified: outage?.isNotified ?? false };
      const openMs = Date.parse(now) - Date.parse(opened.opened_at);
      if (!outage.isNotified && openMs >= minOpenMs(settings))
        outage.isNotified = await sendToOperator(sender, logger, outage.fault);
    } else if (outage) {
      const isOver =
        !outage.isNotified || (await sendToOperator(sender, logger, { ...outage.fault, resolved_at: now }));
      if (isOver) outage = undefined;
    }
  };
  return repeat(settings, async (stopping) => {
    const timeout = AbortSignal.timeout(temporalTimeoutMs);
    const temporal = await pingTemporal(AbortSignal.any([stopping, timeout])).then(
      () => undefined,
      (error: unknown): OperatorFault => {
        const rejection = rejectionIn(error);
        return rejection ? { type: rejection, message: rejectionMessages[rejection] } : temporalGone;
      },
    );
    if (stopping.aborted) return;
    try {
      await storeOutage(pool, logger, 'temporal', temporal);
      await storeWorkers(pool, logger);
      await watchDatabase(true);
      await notifyOperator(pool, settings, logger, sender);
    } catch (error) {
      const isDown = isDatabaseUnavailable(error);
      if (!isDown) logger.warn({ err: error }, 'The servers of exportd could not be checked. Trying again.');
      await watchDatabase(!isDown);
    }
  });
}

/** Opens the fault of workers that no longer report, or resolves it, whichever server opened it. */
async function storeWorkers(pool: Pool, logger: Logger): Promise<void> {
  const { rows } = await pool.query<{ silent: boolean | null }>(
    `select max(seen_at) < clock_timestamp() - $1 * interval '1 millisecond' as silent from exportd.worker_heartbeats`,
    [workerSilenceMs],
  );
  if (rows[0]?.silent === true) {
    await reportFault(pool, logger, workersGone, 'workers');
    return;
  }
  const { rows: ended } = await pool.query<EndedFault>(
    `update exportd.operator_faults set resolved_at = clock_timestamp()
     where dependency = 'workers' and resolved_at is null returning ${endedFaultColumns}`,
  );
  logEnds(logger, ended);
}

const sessionsShared: OperatorFault = {
  type: 'PoolerUnsupported',
  message: `A connection pooler in transaction mode answers at DATABASE_URL: locks and notifications of sessions get lost, so that no reconciler runs, or two. ${poolerAdvice}`,
};

/** Takes a fault that is over, of which the operator was notified, and not of its end. */
async function takeUnnotifiedEnd(
  pool: Pool,
  leaseMs: number,
): Promise<(OpenFault & { readonly resolved_at: string }) | undefined> {
  const { rows } = await pool.query<OpenFault & { readonly resolved_at: string }>(
    `update exportd.operator_faults fault set notify_after = clock_timestamp() + $1 * interval '1 millisecond'
     where id = (
       select id from exportd.operator_faults
       where resolved_at is not null and notified_at is not null and end_notified_at is null
         and notify_after <= clock_timestamp()
       order by resolved_at limit 1 for update skip locked)
     returning ${openFaultColumns}, resolved_at`,
    [leaseMs],
  );
  return rows[0];
}

/** Sends the notification of each open fault and of its end, until the operator has received it. At least once, with the same id. */
async function notifyOperator(
  pool: Pool,
  settings: FaultAlarmSettings,
  logger: Logger,
  sender: FaultSender | undefined,
): Promise<void> {
  if (sender === undefined) return;
  const leaseMs = sender.timeoutMs + notificationPauseMs;
  for (;;) {
    const fault: FaultChange | undefined =
      (await takeUnnotifiedFault(pool, { minOpenMs: minOpenMs(settings), leaseMs })) ??
      (await takeUnnotifiedEnd(pool, leaseMs));
    if (!fault) return;
    if (await sendToOperator(sender, logger, fault))
      await pool.query(
        `update exportd.operator_faults
         set ${fault.resolved_at === undefined ? 'notified_at' : 'end_notified_at'} = clock_timestamp(),
           notify_after = clock_timestamp() where id = $1`,
        [fault.id],
      );
  }
}

/** Errors that happen once are ignored. In milliseconds. */
const minOpenMs = ({ EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL: interval }: FaultAlarmSettings): number =>
  interval / 3;

/** Sends one message to the operator. @returns whether it was delivered, or there is none to tell */
async function sendToOperator(
  sender: FaultSender | undefined,
  logger: Logger,
  fault: FaultChange,
): Promise<boolean> {
  if (sender === undefined) return true;
  const id = `${fault.incident_id}${fault.resolved_at === undefined ? '' : '-resolved'}`;
  const { delivered, detail } = await sender.send(id, fault);
  if (!delivered) logger.warn({ operator_fault: fault.type }, `The operator was not notified. ${detail}`);
  return delivered;
}

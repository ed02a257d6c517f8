import { hostname } from 'node:os';
import { activeRunStatuses } from '../domain/run_state.ts';
import type { Pool } from '../journal/database.ts';
import { deterministicId } from '../journal/journal.ts';
import type { Logger } from '../telemetry/logger.ts';

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

export const worker = `${hostname()}:${process.pid}`;

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
export async function reportFault(
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

/** SQL: the fields of an `OpenFault`. An outage concerns all active runs. */
export const openFaultColumns = `id, incident_id, type, message, dependency, opened_at, last_seen_at, last_seen_by,
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
export interface EndedFault extends OperatorFault {
  readonly incident_id: string;
}

/** SQL: the fields of an `EndedFault`. */
export const endedFaultColumns = 'type, message, incident_id';

export function logEnds(logger: Logger, faults: readonly EndedFault[]): void {
  for (const { type, message, incident_id } of faults)
    logger.info({ operator_fault: type, incident_id }, `This is over: ${message}`);
}

/** Stores whether this process has an outage, which opens its fault or resolves the one that the process has seen last. */
export async function storeOutage(
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

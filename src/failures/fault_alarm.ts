import { connectionErrorCode, findPooler, type Pool, type PoolMode } from '../journal/database.ts';
import { sourceUnavailable } from '../projections/export_conditions.ts';
import { SourceBusy, type SourceMonitor } from '../source/source_connection.ts';
import type { Logger } from '../telemetry/logger.ts';
import { classifyError, poolerAdvice } from './classify_error.ts';
import { type FaultAlarmSettings, type FaultSender, notifyOperator } from './fault_messages.ts';
import { type OperatorFault, reportFault, resolveFaults, storeOutage } from './operator_faults.ts';
import { type ReportedCapacity, storeHeartbeat } from './worker_heartbeat.ts';

/** Waiting runs try again within two intervals, so a fault that no worker has seen for this many is fixed. */
const unseenIntervals = 3;
/** A check at least this often, in milliseconds. */
const maxCheckIntervalMs = 5_000;

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
 * Reports that this worker runs, and whether it has a free slot and turn, and can read the source; resolves faults that no
 * worker sees any more, and notifies the operator once of each open one. All workers check; the database lets one of them act. `stop`
 * waits for the check that is running.
 */
export function createFaultAlarm(
  pool: Pool,
  settings: FaultAlarmSettings,
  logger: Logger,
  sender: FaultSender | undefined,
  source?: Pick<SourceMonitor, 'ping'>,
  capacity?: ReportedCapacity,
) {
  const interval = settings.EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL;
  let pooler: PoolMode | null | undefined;

  return repeat(settings, async () => {
    try {
      await storeHeartbeat(pool, capacity);
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
export function repeat(
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

const sessionsShared: OperatorFault = {
  type: 'PoolerUnsupported',
  message: `A connection pooler in transaction mode answers at DATABASE_URL: locks and notifications of sessions get lost, so that no reconciler runs, or two. ${poolerAdvice}`,
};

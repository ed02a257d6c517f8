import { randomUUID } from 'node:crypto';
import { workerSilenceMs } from '../domain/condition_facts.ts';
import { isDatabaseUnavailable, type Pool } from '../journal/database.ts';
import { deterministicId } from '../journal/journal.ts';
import type { Logger } from '../telemetry/logger.ts';
import { repeat } from './fault_alarm.ts';
import {
  type FaultAlarmSettings,
  type FaultSender,
  minOpenMs,
  notifyOperator,
  sendToOperator,
} from './fault_messages.ts';
import { rejectionIn, rejectionMessages } from './grpc_errors.ts';
import {
  causeOf,
  type EndedFault,
  endedFaultColumns,
  logEnds,
  type OpenFault,
  type OperatorFault,
  reportFault,
  storeOutage,
  worker,
} from './operator_faults.ts';

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

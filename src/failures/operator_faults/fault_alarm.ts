import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { sendWebhook } from '../../notifications/send_webhook.ts';
import { plainSlackMessage } from '../../notifications/slack_message.ts';
import type { Logger } from '../../telemetry/logger.ts';
import {
  deleteResolvedFaults,
  resolveFaults,
  storeFaultNotification,
  takeUnnotifiedFault,
  type OpenFault,
} from './fault_store.ts';

/** The settings of the alarm. */
export type FaultAlarmSettings = Pick<
  Settings,
  | 'EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL'
  | 'EXPORTD_OPERATOR_WEBHOOK_URL'
  | 'EXPORTD_OPERATOR_WEBHOOK_SECRET'
  | 'EXPORTD_OPERATOR_WEBHOOK_FORMAT'
  | 'EXPORTD_WEBHOOK_TIMEOUT'
  | 'EXPORTD_LOG_RETENTION'
>;

/** Repeats the checks of the alarm in a worker process. */
export interface FaultAlarm {
  start(): void;
  /** Waits for the check that is running. */
  stop(): Promise<void>;
}

/** Waiting runs try again within two intervals, so a fault that nobody has seen for this many is fixed. */
const unseenIntervals = 3;
/** A check at least this often, in milliseconds. */
const maxCheckIntervalMs = 5_000;
/** How much longer than a request takes no other worker notifies, so that a failed one is repeated. */
const notificationPauseMs = 10_000;

/**
 * Resolves faults that no worker sees any more, and notifies the operator once of each open one. All workers check; the
 * database lets one of them act.
 */
export function createFaultAlarm(pool: Pool, settings: FaultAlarmSettings, logger: Logger): FaultAlarm {
  const interval = settings.EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL;
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const check = async (): Promise<void> => {
    try {
      for (const { type, message } of await resolveFaults(pool, interval * unseenIntervals))
        logger.info({ operator_fault: type }, `No run waits for this any more: ${message}`);
      await deleteResolvedFaults(pool, settings.EXPORTD_LOG_RETENTION);
      await notifyOperator(pool, settings, logger);
    } catch (error) {
      logger.warn({ err: error }, "Operator's faults could not be checked. Trying again.");
    }
    if (!stopped) timer = setTimeout(start, Math.min(interval, maxCheckIntervalMs));
  };
  const start = (): void => {
    running = check();
  };
  return {
    start,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/** Sends the notification of each open fault, until the webhook has received it. At least once, with the same id. */
export async function notifyOperator(
  pool: Pool,
  settings: FaultAlarmSettings,
  logger: Logger,
): Promise<void> {
  const { EXPORTD_OPERATOR_WEBHOOK_URL: url, EXPORTD_OPERATOR_WEBHOOK_SECRET: secret } = settings;
  if (url === undefined) return;
  const leaseMs = settings.EXPORTD_WEBHOOK_TIMEOUT + notificationPauseMs;
  // A lock or a lookup that fails once concerns nobody.
  const minOpenMs = settings.EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL / 3;
  for (;;) {
    const fault = await takeUnnotifiedFault(pool, { minOpenMs, leaseMs });
    if (!fault) return;
    const id = `${fault.id}-${Date.parse(fault.opened_at)}`;
    const { delivered, detail } = await sendWebhook(
      { id, url, secret, body: messageOf(id, fault, settings) },
      // The operator may have it on any address.
      { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: true, EXPORTD_WEBHOOK_TIMEOUT: settings.EXPORTD_WEBHOOK_TIMEOUT },
    );
    if (delivered) await storeFaultNotification(pool, fault.id);
    else logger.warn({ operator_fault: fault.type }, `The operator's webhook was not notified. ${detail}`);
  }
}

/** The JSON body of the message: what delays runs of all exports, and what to fix. */
function messageOf(
  id: string,
  { type, message, opened_at, last_seen_by, waiting_runs }: OpenFault,
  { EXPORTD_OPERATOR_WEBHOOK_FORMAT: format }: FaultAlarmSettings,
): string {
  if (format === 'slack')
    return JSON.stringify(
      plainSlackMessage(`exportd: ${waiting_runs} runs wait for its operator`, `${type}: ${message}`),
    );
  return JSON.stringify({
    id,
    type: 'operator_fault',
    timestamp: opened_at,
    data: { type, message, opened_at, last_seen_by, waiting_runs },
  });
}

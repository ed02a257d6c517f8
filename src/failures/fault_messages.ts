import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type OpenFault, openFaultColumns } from './operator_faults.ts';

/** A fault that has begun, or that is over. */
type FaultChange = OpenFault & { readonly resolved_at?: string };

/** Tells the operator of a fault, or of its end. */
export interface FaultSender {
  /** Limit of one message, in milliseconds. */
  readonly timeoutMs: number;
  /** Sends a message once. @param id the same for each attempt */
  send(id: string, fault: FaultChange): Promise<{ readonly delivered: boolean; readonly detail: string }>;
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

export type FaultAlarmSettings = Pick<
  Settings,
  'EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL' | 'EXPORTD_LOG_RETENTION'
>;
/** Lease beyond the timeout of one request, after which another worker retries the notification. */
const messagePauseMs = 10_000;

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
export async function notifyOperator(
  pool: Pool,
  settings: FaultAlarmSettings,
  logger: Logger,
  sender: FaultSender | undefined,
): Promise<void> {
  if (sender === undefined) return;
  const leaseMs = sender.timeoutMs + messagePauseMs;
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
export const minOpenMs = ({ EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL: interval }: FaultAlarmSettings): number =>
  interval / 3;

/** Sends one message to the operator. @returns whether it was delivered, or there is none to tell */
export async function sendToOperator(
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

import type { Settings } from '../config/settings.ts';
import { pagerDutyEvent } from './pagerduty_event.ts';
import { plainSlackMessage } from './slack_message.ts';
import { type Attempt, sendWebhook } from './send_webhook.ts';

type OperatorWebhookSettings = Pick<
  Settings,
  | 'EXPORTD_OPERATOR_WEBHOOK_URL'
  | 'EXPORTD_OPERATOR_WEBHOOK_SECRET'
  | 'EXPORTD_OPERATOR_WEBHOOK_FORMAT'
  | 'EXPORTD_WEBHOOK_TIMEOUT'
>;

/** What the operator is told of a fault. It is over if it has `resolved_at`. */
interface Fault {
  readonly incident_id: string;
  readonly type: string;
  readonly message: string;
  readonly opened_at: string;
  readonly last_seen_by: string;
  readonly waiting_runs: number;
  readonly resolved_at?: string;
}

/** The operator's webhook, to which messages about faults are sent; undefined without one. */
export function createOperatorWebhook(settings: OperatorWebhookSettings) {
  const { EXPORTD_OPERATOR_WEBHOOK_URL: url, EXPORTD_OPERATOR_WEBHOOK_SECRET: secret } = settings;
  if (url === undefined) return undefined;
  return {
    timeoutMs: settings.EXPORTD_WEBHOOK_TIMEOUT,
    send: (id: string, fault: Fault): Promise<Attempt> =>
      sendWebhook(
        { id, url, secret, body: messageOf(id, url, fault, settings) },
        // The operator may have it on any address.
        { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: true, EXPORTD_WEBHOOK_TIMEOUT: settings.EXPORTD_WEBHOOK_TIMEOUT },
      ),
  };
}

/** The JSON body of the message: what delays runs of all exports and what to fix, or that it is fixed. */
function messageOf(
  id: string,
  url: string,
  { incident_id, type, message, opened_at, last_seen_by, waiting_runs, resolved_at }: Fault,
  { EXPORTD_OPERATOR_WEBHOOK_FORMAT: format }: OperatorWebhookSettings,
): string {
  const isOver = resolved_at !== undefined;
  const at = resolved_at ?? opened_at;
  if (format === 'pagerduty')
    return JSON.stringify(
      pagerDutyEvent(
        url,
        { id: incident_id, isOpen: !isOver, source: last_seen_by, at },
        { summary: `exportd: ${message}`, details: { type, opened_at, waiting_runs }, url: null },
      ),
    );
  if (format === 'slack')
    return JSON.stringify(
      plainSlackMessage(
        isOver ? 'exportd: this is fixed' : `exportd: ${waiting_runs} runs wait for its operator`,
        `${type}: ${message}\nincident ${incident_id}`,
      ),
    );
  return JSON.stringify({
    id,
    type: isOver ? 'operator_fault.resolved' : 'operator_fault',
    timestamp: at,
    data: { incident_id, type, message, opened_at, last_seen_by, waiting_runs },
  });
}

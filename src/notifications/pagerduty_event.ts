import { type Notification, sentenceWithName } from './notification.ts';

/** An event of PagerDuty's Events API v2. */
export interface PagerDutyEvent {
  readonly routing_key: string;
  readonly event_action: 'trigger' | 'resolve';
  readonly dedup_key: string;
  readonly client: 'exportd';
  readonly client_url?: string;
  readonly payload: {
    readonly summary: string;
    readonly source: string;
    readonly severity: 'error';
    readonly timestamp: string;
    readonly custom_details: unknown;
  };
}

/** PagerDuty rejects a longer summary. */
const maxSummaryLength = 1_024;

/**
 * Formats an event of an incident for PagerDuty, which alerts until the event that resolves it. It comes from the address of the
 * webhook, whose `routing_key` is the integration's.
 */
export const pagerDutyEvent = (
  address: string | null,
  incident: { readonly id: string; readonly isOpen: boolean; readonly source: string; readonly at: string },
  {
    summary,
    details,
    url,
  }: { readonly summary: string; readonly details: unknown; readonly url: string | null },
): PagerDutyEvent => ({
  routing_key: address === null ? '…' : (new URL(address).searchParams.get('routing_key') ?? ''),
  event_action: incident.isOpen ? 'trigger' : 'resolve',
  dedup_key: incident.id,
  client: 'exportd',
  ...(url !== null && { client_url: url }),
  payload: {
    summary: summary.slice(0, maxSummaryLength).toWellFormed(),
    source: incident.source,
    severity: 'error',
    timestamp: incident.at,
    custom_details: details,
  },
});

/**
 * Formats a notification for PagerDuty. One without an incident, such as a test, resolves what was never open: nothing would end
 * its alert.
 */
export function pagerDutyMessage(
  notification: Notification,
  address: string | null,
  url: string | null,
): PagerDutyEvent {
  const { id, data, created_at } = notification;
  const { incident } = data;
  return pagerDutyEvent(
    address,
    {
      id: incident?.id ?? id,
      isOpen: incident?.closed_at === null,
      source: incident?.subject ?? data.batch_export_name ?? 'exportd',
      at: created_at,
    },
    { summary: sentenceWithName(notification), details: data, url },
  );
}

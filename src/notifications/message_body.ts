import type { Settings } from '../config/settings.ts';
import { isAboutOutage, type Notification, type NotificationData } from './notification.ts';
import { pagerDutyMessage } from './pagerduty_event.ts';
import { slackMessage } from './slack_message.ts';

/**
 * The forms of a message. `json`: the notification's id, type, time and data. `slack`: a message of Slack's incoming
 * webhooks, which other chats accept too. `pagerduty`: an event of PagerDuty.
 */
export const payloadFormats = ['json', 'slack', 'pagerduty'] as const;
export type PayloadFormat = (typeof payloadFormats)[number];

/** The settings that messages link with. */
export type PayloadSettings = Pick<Settings, 'EXPORTD_BASE_URL' | 'EXPORTD_CONSOLE'>;

/**
 * The JSON body of a notification's message.
 * @param address the URL of the webhook; null to show the message without the key in it
 */
export function messageBody(
  format: PayloadFormat,
  notification: Notification,
  settings: PayloadSettings,
  address: string | null,
): string {
  const { id, type, data, created_at } = notification;
  switch (format) {
    case 'json':
      return JSON.stringify({ id, type, timestamp: created_at, data });
    case 'slack':
      return JSON.stringify(slackMessage(notification, pageOf(data, settings)));
    case 'pagerduty':
      return JSON.stringify(pagerDutyMessage(notification, address, pageOf(data, settings)));
  }
}

/**
 * The page of the console for a message: of the export, or of all exports for an outage or a deletion; null for a test, without a console, and when
 * the public URL is not set.
 */
function pageOf(
  data: NotificationData,
  { EXPORTD_BASE_URL: baseUrl, EXPORTD_CONSOLE: hasConsole }: PayloadSettings,
): string | null {
  const { batch_export_id } = data;
  if (batch_export_id === null || baseUrl === undefined || !hasConsole) return null;
  const console = `${baseUrl.replace(/\/+$/, '')}/`;
  const hasNoPage = isAboutOutage(data) || data.incident?.closed_by === 'deletion';
  return hasNoPage ? console : `${console}exports/${batch_export_id}`;
}

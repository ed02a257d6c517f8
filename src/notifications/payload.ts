import type { Settings } from '../config/settings.ts';
import type { Notification } from './notification.ts';
import { slackMessage } from './slack_message.ts';

/**
 * The forms of a message. `json`: the notification's id, type, time and data. `slack`: a message of Slack's incoming
 * webhooks, which other chats accept too.
 */
export const payloadFormats = ['json', 'slack'] as const;
export type PayloadFormat = (typeof payloadFormats)[number];

/** The settings that messages link with. */
export type PayloadSettings = Pick<Settings, 'EXPORTD_BASE_URL' | 'EXPORTD_CONSOLE'>;

/** The JSON body of a notification's message. */
export function messageBody(
  format: PayloadFormat,
  notification: Notification,
  settings: PayloadSettings,
): string {
  const { id, type, data, created_at } = notification;
  switch (format) {
    case 'json':
      return JSON.stringify({ id, type, timestamp: created_at, data });
    case 'slack':
      return JSON.stringify(slackMessage(notification, exportUrl(data.batch_export_id, settings)));
  }
}

/** The page of an export in the console; null for a test, without a console, and when the public URL is not set. */
function exportUrl(
  batchExportId: string | null,
  { EXPORTD_BASE_URL: baseUrl, EXPORTD_CONSOLE: hasConsole }: PayloadSettings,
): string | null {
  if (batchExportId === null || baseUrl === undefined || !hasConsole) return null;
  return `${baseUrl.replace(/\/+$/, '')}/exports/${batchExportId}`;
}

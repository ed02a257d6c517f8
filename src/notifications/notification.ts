import type { Settings } from '../config/settings.ts';
import type { Condition } from '../domain/condition.ts';

/** Types of events that webhooks can subscribe to. */
export const notificationTypes = [
  'run.failed',
  'run.retries_exhausted',
  'run.held',
  'run.key_taken',
  'interval.published',
  'interval.expired',
  'batch_export.paused',
  'batch_export.recovered',
  'backfill.paused',
  'source.unavailable',
  'source.recovered',
  'destination.unavailable',
  'destination.recovered',
  'export.behind',
  'export.caught_up',
  'export.holes',
  'export.holes_filled',
] as const;
export type NotificationType = (typeof notificationTypes)[number];

/** What a webhook receives that subscribes to nothing in particular: a person reads these. */
export const incidentTypes = notificationTypes.filter((type) => type !== 'interval.published');

/** The manifest that `interval.published` is about. */
export interface PublishedManifest {
  readonly manifest_key: string;
  /** Counts how often the interval was published, from 1. Of two messages for an interval, the higher one wins. */
  readonly generation: number;
  /** Rows, bytes and number of the files that the manifest names. */
  readonly rows: number;
  readonly bytes: number;
  readonly files: number;
}

/** The fields of a published manifest in the `data` of any message: null unless it is `interval.published`. */
type ManifestFields = { readonly [Field in keyof PublishedManifest]: PublishedManifest[Field] | null };

/** The fields of a message that is not about a manifest. */
export const noManifest: ManifestFields = {
  manifest_key: null,
  generation: null,
  rows: null,
  bytes: null,
  files: null,
};

/** What a message says of the condition of its export. */
export type NotifiedCondition = Pick<Condition, 'severity' | 'cause' | 'summary' | 'since' | 'owner'>;

/** The `data` of a message. It contains no secrets and no rows. Every field is present; null means no value. */
export interface NotificationData extends ManifestFields {
  readonly project_id: number;
  /** This and the following fields are null in a webhook test. */
  readonly batch_export_id: string | null;
  readonly batch_export_name: string | null;
  readonly backfill_id: string | null;
  readonly run_id: string | null;
  /** Status of the run, or `Paused`. */
  readonly status: string | null;
  readonly latest_error: string | null;
  readonly data_interval_start: string | null;
  readonly data_interval_end: string | null;
  /** As it was when the message was first sent. Null before, in a test, and for `interval.published`. */
  readonly condition: NotifiedCondition | null;
}

/** The data of a message that no run and no backfill caused. */
export const withoutRun = {
  backfill_id: null,
  run_id: null,
  status: null,
  latest_error: null,
  data_interval_start: null,
  data_interval_end: null,
} as const;

export const testNotificationData = (projectId: number): NotificationData => ({
  project_id: projectId,
  batch_export_id: null,
  batch_export_name: null,
  ...withoutRun,
  condition: null,
  ...noManifest,
});

/** A stored notification. */
export interface Notification {
  readonly id: string;
  readonly type: NotificationType | 'test';
  readonly data: NotificationData;
  /** Time of the event, ISO 8601. */
  readonly created_at: string;
}

/** Describes the event in a short clause, without the error message. */
export function describeNotification({ type, data }: Pick<Notification, 'type' | 'data'>): string {
  const interval = `${data.data_interval_start ?? '?'} to ${data.data_interval_end ?? '?'}`;
  switch (type) {
    case 'run.failed':
      return `the run of ${interval} failed`;
    case 'run.retries_exhausted':
      return `the run of ${interval} ended as ${data.status ?? '?'} with no automatic retries left`;
    case 'run.held':
      return `the run of ${interval} was held, because the source no longer has all rows that were exported`;
    case 'run.key_taken':
      return `other objects have keys of the run of ${interval}, which writes its files under others`;
    case 'interval.published':
      return `the interval ${interval} was published as generation ${data.generation ?? '?'} with ${(data.rows ?? 0).toLocaleString('en')} rows`;
    case 'interval.expired':
      return `the source has no rows left for ${interval}, which stay in the bucket`;
    case 'batch_export.paused':
      return 'the batch export was paused after repeated failures';
    case 'backfill.paused':
      return `backfill ${data.backfill_id ?? '?'} was paused after repeated failures`;
    case 'batch_export.recovered':
      if (data.data_interval_start === null) return 'no interval of the batch export is held any more';
      return `${data.backfill_id === null ? 'the batch export' : `backfill ${data.backfill_id}`} recovered with the run of ${interval}`;
    case 'source.unavailable':
      return 'exportd cannot read the source';
    case 'source.recovered':
      return 'exportd can read the source again';
    case 'destination.unavailable':
      return 'the bucket does not respond';
    case 'destination.recovered':
      return 'the bucket responds again';
    case 'export.behind':
      return 'intervals of the batch export are late';
    case 'export.caught_up':
      return 'no interval of the batch export is late any more';
    case 'export.holes':
      return 'intervals between exported ones were never exported';
    case 'export.holes_filled':
      return 'no interval between exported ones is missing any more';
    case 'test':
      return 'test';
  }
}

/** A message of Slack's incoming webhooks. */
export interface SlackMessage {
  /** What a client shows that has no blocks, such as a push notification. */
  readonly text: string;
  readonly blocks: readonly SlackBlock[];
}

interface SlackText {
  readonly type: 'mrkdwn';
  readonly text: string;
}

type SlackBlock =
  | { readonly type: 'section'; readonly text: SlackText }
  | { readonly type: 'context'; readonly elements: readonly SlackText[] };

/** Slack rejects a block with more than 3,000 characters, of which an escaped one has up to five. */
const maxErrorLength = 500;

/**
 * Formats a notification for Slack.
 * @param url the page of the export; null without one
 */
function slackMessage(notification: Notification, url: string | null): SlackMessage {
  const { type, data } = notification;
  const name = data.batch_export_name;
  const description = `${capitalize(describeNotification(notification))}.`;
  const title = escapeMarkup(name ?? 'exportd');
  const heading = url === null ? title : `<${url}|${title}>`;
  return {
    text: escapeMarkup(name === null ? description : `${name}: ${description}`),
    blocks: [
      section(`*${heading}*\n${escapeMarkup(description)}`),
      ...(data.latest_error === null ? [] : [section(code(data.latest_error))]),
      ...(data.condition === null ? [] : [section(`Now: ${escapeMarkup(data.condition.summary)}`)]),
      ...(data.manifest_key === null ? [] : [section(`Manifest: \`${escapeMarkup(data.manifest_key)}\``)]),
      { type: 'context', elements: [markdown(`${type} · project ${data.project_id}`)] },
    ],
  };
}

/** Formats a plain message for Slack: what happened, and details of it. */
export const plainSlackMessage = (title: string, details: string): SlackMessage => ({
  text: escapeMarkup(title),
  blocks: [section(`*${escapeMarkup(title)}*`), section(code(details))],
});

const markdown = (text: string): SlackText => ({ type: 'mrkdwn', text });
const section = (text: string): SlackBlock => ({ type: 'section', text: markdown(text) });

/** Backticks would end the code. */
function code(text: string): string {
  const shown = text.length > maxErrorLength ? `${text.slice(0, maxErrorLength).toWellFormed()}…` : text;
  return `\`\`\`${escapeMarkup(shown.replaceAll('`', "'"))}\`\`\``;
}

/** The characters that Slack interprets, such as `<!channel>`. */
const escapeMarkup = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

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

import { concernOf, type Condition, notifiedCauses } from '../domain/condition.ts';

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
  'backfill.completed',
  'source.unavailable',
  'source.recovered',
  'destination.unavailable',
  'destination.recovered',
  'export.behind',
  'export.caught_up',
  'export.differs',
  'export.agrees',
  'export.holes',
  'export.holes_filled',
] as const;
export type NotificationType = (typeof notificationTypes)[number];

/** What a webhook receives that subscribes to nothing in particular: a person reads these. */
export const incidentTypes = notificationTypes.filter(
  (type) => type !== 'interval.published' && type !== 'backfill.completed',
);

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

/** The intervals of the backfill that `backfill.completed` is about, by how their runs ended, and the rows that were exported. */
export interface CompletedBackfill {
  readonly intervals: number;
  readonly exported: number;
  /** Of these nothing was published: the bucket had their rows. */
  readonly unchanged: number;
  readonly failed: number;
  readonly rows: number;
}

/** What a message says of the condition of its export. */
export type NotifiedCondition = Pick<Condition, 'severity' | 'cause' | 'summary' | 'since' | 'owner'>;

/** Why an incident is open: a condition, or runs that failed. */
export const incidentCauses = [...notifiedCauses, 'failed'] as const;

/** What one message opens and another one ends. */
export interface NotifiedIncident {
  /** The same in all messages about it. */
  readonly id: string;
  readonly cause: (typeof incidentCauses)[number];
  /** What is out, which may concern several exports; null for the trouble of one export. */
  readonly subject: string | null;
  /** Exports of the project that it concerns, and their intervals that wait, or waited. */
  readonly exports: number;
  readonly intervals: number;
  readonly opened_at: string;
  /** Null until it is over. */
  readonly closed_at: string | null;
  /** `disuse`: it lasts, but no export waits for it any more, such as after a pause. `deletion`: of the export. */
  readonly closed_by: (typeof incidentEnds)[number] | null;
}

/** How an incident ends. */
export const incidentEnds = ['recovery', 'disuse', 'deletion'] as const;

/** The end of an incident that is open. */
export const notClosed = { closed_at: null, closed_by: null } as const;

/** The `data` of a message. It contains no secrets and no rows. Every field is present; null means no value. */
export interface NotificationData extends ManifestFields {
  readonly project_id: number;
  /** This and the following fields are null in a webhook test. */
  readonly batch_export_id: string | null;
  readonly batch_export_name: string | null;
  readonly backfill_id: string | null;
  readonly run_id: string | null;
  /** Status of the run or the backfill, or `Paused`. */
  readonly status: string | null;
  readonly latest_error: string | null;
  readonly data_interval_start: string | null;
  readonly data_interval_end: string | null;
  /** Null unless the message is `backfill.completed`, whose range the two times are. */
  readonly backfill: CompletedBackfill | null;
  /** Null in a message that opens none and ends none. */
  readonly incident: NotifiedIncident | null;
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
  backfill: null,
  incident: null,
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
  if (data.incident?.closed_by === 'deletion') return 'the batch export was deleted';
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
    case 'backfill.completed':
      return `the backfill of ${interval} is done${data.backfill === null ? '' : `: ${describeBackfill(data.backfill)}`}`;
    case 'batch_export.recovered':
      if (data.data_interval_start === null) return 'no interval of the batch export is held any more';
      return `${data.backfill_id === null ? 'the batch export' : `backfill ${data.backfill_id}`} recovered with the run of ${interval}`;
    case 'source.unavailable':
      return `exportd cannot read the source${concern(data)}`;
    case 'source.recovered':
      if (isUnused(data)) return `no export waits for the source any more${concern(data)}`;
      return `exportd can read the source again${concern(data)}`;
    case 'destination.unavailable':
      return `${data.incident?.subject ?? 'the bucket'} does not respond${concern(data)}`;
    case 'destination.recovered':
      if (isUnused(data))
        return `no export waits for ${data.incident?.subject ?? 'the bucket'} any more${concern(data)}`;
      return `${data.incident?.subject ?? 'the bucket'} responds again${concern(data)}`;
    case 'export.behind':
      return 'intervals of the batch export are late';
    case 'export.caught_up':
      return 'no interval of the batch export is late any more';
    case 'export.differs':
      return 'files of the batch export differ from the source';
    case 'export.agrees':
      return 'no files of the batch export differ from the source any more';
    case 'export.holes':
      return 'intervals between exported ones were never exported';
    case 'export.holes_filled':
      return 'no interval between exported ones is missing any more';
    case 'test':
      return 'test';
  }
}

const isUnused = ({ incident }: Pick<NotificationData, 'incident'>): boolean =>
  incident?.closed_by === 'disuse';

/** How much an outage concerns, as the end of a clause. */
const concern = ({ incident }: Pick<NotificationData, 'incident'>): string =>
  incident === null ? '' : `: ${concernOf(incident, incident.closed_at !== null)}`;

/** How the intervals of a backfill ended, as the end of a sentence. */
function describeBackfill({ intervals, exported, unchanged, failed, rows }: CompletedBackfill): string {
  const count = (value: number): string => value.toLocaleString('en');
  return [
    `${count(exported)} of ${count(intervals)} intervals exported with ${count(rows)} rows`,
    unchanged > 0 && `${count(unchanged)} unchanged`,
    failed > 0 && `${count(failed)} not exported`,
  ]
    .filter((part) => typeof part === 'string')
    .join(', ');
}

/** Whether a message is about what several exports need, and not about one of them. */
export const isAboutOutage = ({ incident }: NotificationData): boolean =>
  (incident?.subject ?? null) !== null;

/** What a message says of its export, as a sentence. */
export function sentenceOf(notification: Notification): string {
  const clause = describeNotification(notification);
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`;
}

/** What a message says, in a sentence that stands alone: it names the export. */
export function sentenceWithName(notification: Notification): string {
  const { data } = notification;
  const name = isAboutOutage(data) ? null : data.batch_export_name;
  return name === null ? sentenceOf(notification) : `${name}: ${sentenceOf(notification)}`;
}

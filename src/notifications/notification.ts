/** What people can be told of. */
export const notificationTypes = [
  'run.failed',
  'run.retries_exhausted',
  'batch_export.paused',
  'batch_export.recovered',
  'backfill.paused',
] as const;
export type NotificationType = (typeof notificationTypes)[number];

/** What a message says of what happened; no secret and no row. Every member is present, null where there is no value. */
export interface NotificationData {
  readonly project_id: number;
  /** Null in the test of a webhook, as is all that follows. */
  readonly batch_export_id: string | null;
  readonly batch_export_name: string | null;
  readonly backfill_id: string | null;
  readonly run_id: string | null;
  /** Of the run, or `Paused`. */
  readonly status: string | null;
  readonly latest_error: string | null;
  readonly data_interval_start: string | null;
  readonly data_interval_end: string | null;
}

/** What the test of a webhook says. */
export const testNotificationData = (projectId: number): NotificationData => ({
  project_id: projectId,
  batch_export_id: null,
  batch_export_name: null,
  backfill_id: null,
  run_id: null,
  status: null,
  latest_error: null,
  data_interval_start: null,
  data_interval_end: null,
});

/** Something to tell, as it is stored. */
export interface Notification {
  readonly id: string;
  readonly type: NotificationType | 'test';
  readonly data: NotificationData;
  /** When it happened; ISO 8601. */
  readonly created_at: string;
}

/** What happened, to follow "was told that "; short, and without what is in the error. */
export function describeNotification({ type, data }: Pick<Notification, 'type' | 'data'>): string {
  const interval = `${data.data_interval_start ?? '?'} to ${data.data_interval_end ?? '?'}`;
  switch (type) {
    case 'run.failed':
      return `the run of ${interval} Failed`;
    case 'run.retries_exhausted':
      return `the run of ${interval} ended ${data.status ?? '?'} and has no automatic retry left`;
    case 'batch_export.paused':
      return 'the batch export has paused itself after repeated failures';
    case 'backfill.paused':
      return `the backfill ${data.backfill_id ?? '?'} has paused itself after repeated failures`;
    case 'batch_export.recovered':
      return `the ${data.backfill_id === null ? 'batch export' : `backfill ${data.backfill_id}`} works again, with the run of ${interval}`;
    case 'test':
      return 'this is a test';
  }
}

/** The body of the message about a notification. */
export const messageBody = ({ id, type, data, created_at }: Notification): string =>
  JSON.stringify({ id, type, timestamp: created_at, data });

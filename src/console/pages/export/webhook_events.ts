import type { WebhookResponse } from '../../../http/webhooks/schema.ts';

/** An event that webhooks can receive. */
export type WebhookEvent = WebhookResponse['events'][number];

/** What each event means. */
export const webhookEvents: Readonly<Record<WebhookEvent, string>> = {
  'run.failed': 'a run failed',
  'run.retries_exhausted': 'no automatic retry is left',
  'run.held': 'a run is held, because rows are missing in the source',
  'run.key_taken': 'another object has the key of a file',
  'interval.published': 'an interval was published',
  'interval.expired': 'the bucket has deleted an interval',
  'batch_export.paused': 'the export was paused after failures',
  'batch_export.recovered': 'it works again',
  'backfill.paused': 'a backfill was paused after failures',
};

/** What a new webhook receives, unless somebody chooses: what a person has to know. */
export const incidentEvents = (Object.keys(webhookEvents) as WebhookEvent[]).filter(
  (event) => event !== 'interval.published',
);

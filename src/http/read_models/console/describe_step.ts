import type { RunEvent } from '../../../domain/run_events.ts';
import type { RunStep } from '../../schemas/console/run_activity.ts';

/** What a step says; what it lacks is `info`, without detail, of the whole run. */
type StepDescription = Pick<RunStep, 'summary'> & Partial<Pick<RunStep, 'level' | 'detail' | 'range'>>;

/** Says in a few words what an event of a run means to the owner of the export. */
export function describeStep(event: RunEvent): StepDescription {
  switch (event.type) {
    case 'RunCreated':
      return { summary: 'Run created', detail: originOf(event.data) };
    case 'RunCounted':
      return event.data.settled
        ? { summary: `Counted ${rows(event.data.records_total_count)} in the source` }
        : {
            summary: `Counted ${rows(event.data.records_total_count)} in the source`,
            level: 'warning',
            detail: 'Transactions that may add rows were still open. exportd follows up when they end.',
          };
    case 'RunReplacementChecked':
      return {
        summary: 'Compared the source with the current manifest',
        level: event.data.outcome === 'rows_missing' ? 'error' : 'info',
        detail: `${event.data.outcome.replaceAll('_', ' ')}: ${event.data.bucket_rows} rows in the bucket, ${event.data.source_rows} in the source, ${event.data.missing_rows} missing`,
      };
    case 'RunExportStarted':
      return { summary: 'Started to read rows', range: event.data.range };
    case 'RunAttemptStarted':
      return { summary: 'Another attempt took over', range: event.data.range };
    case 'RunAttemptFailed':
      return { summary: event.data.error_type, level: 'error', detail: event.data.latest_error };
    case 'RunGenerationReserved':
      return {
        summary: `Reserved generation ${event.data.generation}`,
        detail: event.data.late_rows === true ? 'Rows arrived in the source during the export.' : null,
      };
    case 'RunKeyTaken':
      return { summary: 'Another object has the key', level: 'warning', detail: event.data.key };
    case 'RunUploadCreated':
      return {
        summary: `Started file ${event.data.file + 1}`,
        range: event.data.range,
        detail: event.data.key,
      };
    case 'RunUploadResumed':
      return {
        summary: `Resumed the upload after ${rows(event.data.rows)}`,
        range: event.data.range,
        detail: event.data.key,
      };
    case 'RunPartPlanned':
      return { summary: `Sent part ${event.data.part.part_number}`, range: event.data.range };
    case 'RunFileCompleted':
      return {
        summary: `Completed a file of ${rows(event.data.file.rows)}`,
        range: event.data.range,
        detail: event.data.file.key,
      };
    case 'RunRangeFinished':
      return { summary: 'Read its last row', range: event.data.range };
    case 'RunRejectedFilePlanned':
      return {
        summary: `Stored ${rows(event.data.file.rows)} that the format cannot represent`,
        level: 'warning',
        detail: event.data.file.key,
      };
    case 'RunExportFinished':
      return { summary: `Read all ${rows(event.data.source_rows)} of the source` };
    case 'RunManifestAdopted':
      return { summary: 'Found a manifest that the journal did not know', level: 'warning' };
    case 'RunPublishStarted':
      return { summary: 'Claimed publishing' };
    case 'RunPublishResumed':
      return { summary: 'Another attempt continued publishing' };
    case 'RunPublishWithdrawn':
      return { summary: 'Withdrew its claim of publishing', level: 'warning' };
    case 'RunCompleted':
      return { summary: 'Published the manifest', detail: event.data.manifest_key };
    case 'RunFailed':
      return {
        summary: event.data.held ? 'Held, because rows are missing in the source' : 'Failed',
        level: 'error',
        detail: event.data.latest_error,
      };
    case 'RunFailedRetryable':
    case 'RunTimedOut':
      return {
        summary: event.type === 'RunTimedOut' ? 'Timed out' : 'Failed for a transient reason',
        level: 'error',
        detail: `${event.data.latest_error} ${retryDetail(event.data.retry_delay_seconds)}`,
      };
    case 'RunTerminated':
      return { summary: 'Terminated', level: 'error', detail: event.data.latest_error };
    case 'RunCancelled':
      return { summary: 'Cancelled', level: 'warning', detail: event.data.reason };
    case 'RunContinuedAsNew':
      return { summary: 'Continued in another run', detail: event.data.next_run_id };
    case 'RunObjectDeleted':
      return {
        summary: event.data.deleted ? 'Deleted an obsolete object' : 'An obsolete object stays in the bucket',
        level: event.data.deleted ? 'info' : 'warning',
        detail: event.data.reason ?? event.data.key,
      };
    case 'RunObjectDeletionFailed':
      return {
        summary: 'Could not delete an obsolete object yet',
        level: 'warning',
        detail: event.data.reason,
      };
    case 'RunBarrierAdvanced':
      return { summary: 'Checked the transactions that were open' };
    case 'RunSettled':
      return {
        summary: 'The open transactions have ended',
        detail: event.data.outcome.replaceAll('_', ' '),
      };
    case 'IntervalCompared':
      return {
        summary: 'Compared with the source',
        level: event.data.outcome === 'equal' ? 'info' : 'warning',
        detail: `${event.data.outcome.replaceAll('_', ' ')}: ${event.data.bucket_rows} rows in the bucket, ${event.data.source_rows} in the source`,
      };
    case 'RunRetryCancelled':
      return { summary: 'The automatic retry was cancelled', detail: event.data.reason };
  }
}

const rows = (count: number): string => (count === 1 ? '1 row' : `${count.toLocaleString('en')} rows`);

const retryDetail = (delaySeconds: number | null): string =>
  delaySeconds === null
    ? 'No automatic retry follows.'
    : `exportd retries it in ${Math.round(delaySeconds)} seconds.`;

const originOf = ({
  backfill_id,
  retry_number,
  continues_run_id,
}: Extract<RunEvent, { type: 'RunCreated' }>['data']): string => {
  if (continues_run_id !== null) return `Continues run ${continues_run_id}`;
  if (retry_number > 0) return `Automatic retry ${retry_number}`;
  return backfill_id === null ? 'By the schedule' : `By backfill ${backfill_id}`;
};

import type { Pool } from '../../../journal/database.ts';
import { requireBatchExport } from '../../batch_exports/read_model.ts';
import { readsExports, teamOf } from '../../requests.ts';
import type { ProjectRoutes } from '../../route_context.ts';
import { requireRun, toRunResponse } from '../../runs/read_model.ts';
import { runPath } from '../../runs/schema.ts';
import { errorResponses } from '../../schemas.ts';
import { type RunStep, type RunStepsResponse, runStepsSchema } from './schema.ts';
import type { RunEvent } from '../../../domain/run_events.ts';

/** What a step says; what it lacks is `info`, without detail, of the whole run. */
type StepDescription = Pick<RunStep, 'summary'> & Partial<Pick<RunStep, 'level' | 'detail' | 'range'>>;

/** Says in a few words what an event of a run means to the owner of the export. */
function describeStep(event: RunEvent): StepDescription {
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
        detail: `${event.data.outcome.replaceAll('_', ' ')}: ${rows(event.data.bucket_rows)} in the bucket, ${event.data.source_rows.toLocaleString('en')} in the source, ${event.data.missing_rows.toLocaleString('en')} missing`,
      };
    case 'RunExportStarted':
      return {
        summary: 'Started to read rows',
        range: event.data.range,
        detail: event.data.generation === undefined ? null : `Reserved generation ${event.data.generation}.`,
      };
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
        summary: `Stored ${rows(event.data.file.rows)} that could not be exported`,
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
    case 'RunCancelRequested':
      return {
        summary: 'Cancellation requested',
        level: 'warning',
        detail: 'The run is cancelled once its bucket shows that nothing was published.',
      };
    case 'RunPublishWithdrawn':
      return { summary: 'Withdrew its claim of publishing', level: 'warning' };
    case 'RunTargetPlanned': {
      const { location, version } = event.data.commit;
      return { summary: `Planned version ${version} of the table`, detail: String(location) };
    }
    case 'RunTargetCommitted': {
      const { location, version, adds, removes } = event.data.commit;
      return {
        summary: `Committed version ${version} of the table`,
        detail: `${adds} files added, ${removes} removed in ${location}`,
      };
    }
    case 'RunCompleted':
      return { summary: 'Published the manifest', detail: event.data.manifest_key };
    case 'RunUnchanged':
      return {
        summary: `Unchanged: nothing was published, and generation ${event.data.generation} stays`,
      };
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
        detail: `${event.data.outcome.replaceAll('_', ' ')}: ${rows(event.data.bucket_rows)} in the bucket, ${event.data.source_rows.toLocaleString('en')} in the source`,
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
  purpose,
  retry_number,
  continues_run_id,
}: Extract<RunEvent, { type: 'RunCreated' }>['data']): string => {
  if (continues_run_id !== null) return `Continues run ${continues_run_id}`;
  if (retry_number > 0) return `Automatic retry ${retry_number}`;
  return purpose.kind === 'interval' ? 'By the schedule' : `By backfill ${purpose.backfill_id}`;
};

/** The steps of a response. A run of hundreds of files has more. */
const maxSteps = 500;
/** The bins of the throughput. */
const maxBins = 120;

/** Reads what a run did, from the journal: its steps, and the rows and bytes that it sent over time. */
async function readRunSteps(pool: Pool, runId: string): Promise<Omit<RunStepsResponse, 'run'>> {
  const { rows } = await pool.query<RunEvent & { readonly recorded_at: string }>(
    `select event_type as type, data, recorded_at from exportd.journal_events
     where stream_type = 'run' and stream_id = $1 and event_type <> 'RunPartPlanned'
     order by stream_version limit $2`,
    [runId, maxSteps + 1],
  );
  const { parts, throughput } = await readThroughput(pool, runId);
  return {
    steps: rows.slice(0, maxSteps).map(({ recorded_at, ...event }) => ({
      at: recorded_at,
      level: 'info' as const,
      detail: null,
      range: null,
      ...describeStep(event),
    })),
    parts,
    is_complete: rows.length <= maxSteps,
    throughput,
  };
}

async function readThroughput(
  pool: Pool,
  runId: string,
): Promise<Pick<RunStepsResponse, 'parts' | 'throughput'>> {
  const { rows } = await pool.query<{
    at: string;
    seconds: number;
    rows: number;
    bytes: number;
    parts: number;
  }>(
    `with part as (
       select recorded_at, (data->'part'->>'rows')::bigint as rows, (data->'part'->>'bytes')::bigint as bytes
       from exportd.journal_events
       where stream_type = 'run' and stream_id = $1 and data ? 'part'
     ), bin as (
       select min(recorded_at) as origin,
         greatest(1, ceil(extract(epoch from max(recorded_at) - min(recorded_at)) / $2))::float8 as seconds
       from part)
     select date_bin(make_interval(secs => bin.seconds), part.recorded_at, bin.origin) as at, bin.seconds,
       sum(part.rows)::bigint as rows, sum(part.bytes)::bigint as bytes, count(*) as parts
     from part cross join bin group by 1, 2 order by 1`,
    [runId, maxBins],
  );
  return {
    parts: rows.reduce((total, bin) => total + bin.parts, 0),
    throughput: rows.map(({ at, seconds, rows: sent, bytes }) => ({ at, seconds, rows: sent, bytes })),
  };
}

/** Shows what a run did. */
export const runStepRoutes: ProjectRoutes = (app, { pool, runLink }) => {
  app.get(
    '/console/batch_exports/:batch_export_id/runs/:id/steps',
    {
      ...readsExports,
      schema: { hide: true, params: runPath, response: { 200: runStepsSchema, ...errorResponses } },
    },
    async (request) => {
      const { batch_export_id, id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const run = await requireRun(pool, { batch_export_id, id });
      return { run: toRunResponse(run, runLink), ...(await readRunSteps(pool, id)) };
    },
  );
};

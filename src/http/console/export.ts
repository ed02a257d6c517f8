import type { RunEvent } from '../../domain/run.ts';
import { activeRunStatuses } from '../../domain/run_state.ts';
import type { Pool } from '../../journal/database.ts';
import { readStandings } from '../../projections/export_conditions.ts';
import { backfillsPath } from '../backfills/schema.ts';
import { readExportsOfBucket, requireBatchExport } from '../batch_exports/read_model.ts';
import { readIntervalPage } from '../intervals/read_model.ts';
import { resolveListTimes } from '../paging.ts';
import { type ProjectRoutes, readsExports, teamOf } from '../command_service.ts';
import { requireRun, runColumns, type RunRow, toRunResponse } from '../runs/read_model.ts';
import { runPath } from '../runs/schema.ts';
import { errorResponses } from '../schemas.ts';
import {
  activeRunsSchema,
  type RunStep,
  type RunStepsResponse,
  runStepsSchema,
  sameTroubleSchema,
  timelineQuery,
  type TimelineResponse,
  timelineSchema,
} from './schema.ts';

/** An active run, and what its newest events say of its speed. */
interface ActiveRunRow extends RunRow {
  readonly now: string;
  /** All active runs of the export, also those that are not read. */
  readonly total: number;
  readonly rows_per_second: number | null;
  readonly bytes_per_second: number | null;
  readonly attempts: number;
}

const windowSeconds = 60;
/** Events that are read of each run: more than a minute has. */
const maxEvents = 1_000;
/** An export has few active runs: at most those of its schedule and of its backfills. */
const maxRuns = 50;

const statuses = activeRunStatuses.map((status) => `'${status}'`).join(', ');

/**
 * Reads the active runs of an export, oldest first. Their speed is that of the last minute: a part is recorded before it
 * is sent, with its rows.
 */
async function readActiveRuns(pool: Pool, batchExportId: string): Promise<ActiveRunRow[]> {
  const { rows } = await pool.query<ActiveRunRow>(
    `select active.*, statement_timestamp() as now,
       round(part.rows / greatest(1, part.seconds))::float8 as rows_per_second,
       round(part.bytes / greatest(1, part.seconds))::float8 as bytes_per_second,
       (select coalesce(sum((range->>'attempt')::int), 0)::int
        from exportd.stream_states, jsonb_array_elements(state->'ranges') range
        where stream_type = 'run' and stream_id = active.id) as attempts
     from (select ${runColumns}, count(*) over ()::int as total from exportd.batch_export_runs
       where batch_export_id = $1 and status in (${statuses}) order by position limit ${maxRuns}) active
     cross join lateral (
       select sum((data->'part'->>'rows')::numeric) filter (where is_part) as rows,
         sum((data->'part'->>'bytes')::numeric) filter (where is_part) as bytes,
         least(${windowSeconds}, extract(epoch from statement_timestamp() - min(recorded_at))) as seconds
       from (
         select data, recorded_at, data ? 'part' as is_part from exportd.journal_events
         where stream_type = 'run' and stream_id = active.id order by stream_version desc limit ${maxEvents}) newest
       where recorded_at > statement_timestamp() - make_interval(secs => ${windowSeconds})) part
     order by active.position`,
    [batchExportId],
  );
  return rows;
}

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
        detail: `${event.data.outcome.replaceAll('_', ' ')}: ${event.data.bucket_rows} rows in the bucket, ${event.data.source_rows} in the source, ${event.data.missing_rows} missing`,
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
    case 'RunTableCommitPlanned':
      return {
        summary: `Planned version ${event.data.version} of the table`,
        detail: event.data.location,
      };
    case 'RunTableCommitted':
      return {
        summary: `Committed version ${event.data.version} of the table`,
        detail: `${event.data.adds} files added, ${event.data.removes} removed in ${event.data.location}`,
      };
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

/** The entries of a response. A month of hours has 744. */
const maxEntries = 1_000;

/** Reads the newest intervals of an export in a range of time, oldest first, with the time that each landed. */
async function readTimeline(
  pool: Pool,
  batchExportId: string,
  range: { readonly after?: string | undefined; readonly before?: string | undefined },
): Promise<TimelineResponse> {
  const page = await readIntervalPage(pool, batchExportId, {
    ...range,
    limit: maxEntries,
    statuses: undefined,
  });
  const entries = page.intervals.toReversed();
  const landings = await readLandings(pool, batchExportId, {
    start: entries[0]?.data_interval_start,
    end: entries.at(-1)?.data_interval_end,
  });
  return {
    now: landings.now,
    is_complete: page.next === null,
    entries: entries.map((entry) => ({
      data_interval_start: entry.data_interval_start,
      data_interval_end: entry.data_interval_end,
      intervals: entry.intervals,
      status: entry.status,
      reason: entry.reason,
      generation: entry.generation,
      rows: entry.rows,
      bytes: entry.bytes,
      landed_at: landings.times.get(landingKey(entry.data_interval_start, entry.data_interval_end)) ?? null,
    })),
  };
}

const landingKey = (start: string, end: string): string => `${start}/${end}`;

/** When the first run of each interval completed, and the time of the database. */
async function readLandings(
  pool: Pool,
  batchExportId: string,
  { start, end }: { readonly start: string | undefined; readonly end: string | undefined },
): Promise<{ readonly now: string; readonly times: ReadonlyMap<string, string> }> {
  const { rows } = await pool.query<{
    now: string;
    data_interval_start: string | null;
    data_interval_end: string | null;
    landed_at: string | null;
  }>(
    `select clock.now, landing.* from (select statement_timestamp() as now) clock left join (
       select data_interval_start, data_interval_end, min(finished_at) as landed_at from exportd.batch_export_runs
       where batch_export_id = $1 and data_interval_start >= $2 and data_interval_start < $3 and status = 'Completed'
       group by data_interval_start, data_interval_end) landing on true`,
    [batchExportId, start ?? null, end ?? null],
  );
  return {
    now: rows[0]?.now ?? '',
    times: new Map(
      rows.flatMap(({ data_interval_start, data_interval_end, landed_at }) =>
        data_interval_start !== null && data_interval_end !== null && landed_at !== null
          ? [[landingKey(data_interval_start, data_interval_end), landed_at] as const]
          : [],
      ),
    ),
  };
}

/** The exports of a response, which are cured with one click. */
const maxSameTrouble = 100;

/** What the console shows of an export, beside the documented resources. */
export const consoleExportRoutes: ProjectRoutes = (app, context) => {
  const { pool, runLink } = context;

  app.get(
    '/console/batch_exports/:batch_export_id/timeline',
    {
      ...readsExports,
      schema: {
        hide: true,
        params: backfillsPath,
        querystring: timelineQuery,
        response: { 200: timelineSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const range = await resolveListTimes(pool, teamOf(request), request.query);
      return readTimeline(pool, batch_export_id, range);
    },
  );

  app.get(
    '/console/batch_exports/:batch_export_id/same_trouble',
    {
      ...readsExports,
      schema: {
        hide: true,
        params: backfillsPath,
        response: { 200: sameTroubleSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id: id } = request.params;
      const others = await readExportsOfBucket(pool, await requireBatchExport(pool, teamOf(request), id));
      const shown = others.slice(0, maxSameTrouble);
      const ids = [id, ...shown.map((other) => other.id)];
      const standings = await readStandings(pool, ids, () => undefined);
      const cause = standings.get(id)?.condition.cause;
      return {
        exports: shown.flatMap((other) => {
          const condition = standings.get(other.id)?.condition;
          return condition !== undefined && condition.cause === cause ? [{ ...other, condition }] : [];
        }),
      };
    },
  );

  app.get(
    '/console/batch_exports/:batch_export_id/active_runs',
    {
      ...readsExports,
      schema: {
        hide: true,
        params: backfillsPath,
        response: { 200: activeRunsSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const runs = await readActiveRuns(pool, batch_export_id);
      return {
        now: runs[0]?.now ?? new Date().toISOString(),
        total: runs[0]?.total ?? 0,
        runs: runs.map(({ rows_per_second, bytes_per_second, attempts, ...run }) => ({
          run: toRunResponse(run, runLink),
          rows_per_second,
          bytes_per_second,
          attempts,
        })),
      };
    },
  );

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

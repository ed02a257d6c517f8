import type { Connection, Pool } from '../journal/database.ts';
import { destinationUri } from './described_export.ts';

/**
 * The trace of the command that created a backfill, as a W3C `traceparent`; null without one.
 * @param backfillId an SQL expression
 */
export const backfillTraceParent = (backfillId: string): string => `
  (select command.trace_parent from exportd.journal_events created
   join exportd.commands command
     on command.id = case when created.cause like 'command:%' then substr(created.cause, 9)::uuid end
   where created.stream_type = 'backfill' and created.stream_id = ${backfillId} and created.stream_version = 1)`;

/** What starting a run workflow requires. Contains only names and times that a workflow history may contain. */
export interface StartableRun {
  readonly run_id: string;
  readonly batch_export_id: string;
  readonly batch_export_name: string;
  readonly team_id: number;
  readonly model: string;
  readonly destination_type: string;
  readonly interval: string;
  readonly timezone: string;
  /** Bucket and prefix, such as `s3://bucket/prefix`; null if the config is gone. */
  readonly destination_uri: string | null;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  /** The backfill that created it, or null. */
  readonly backfill_id: string | null;
  /** The trace that it belongs to, as a W3C `traceparent`; null if it has its own. */
  readonly trace_parent: string | null;
}

/**
 * The largest backfill, in intervals, whose runs belong to the trace of the request. Those of a larger one, and scheduled
 * runs, have a trace each.
 */
const maxIntervalsInTrace = 24;

const columns = `run.id as run_id, run.batch_export_id, export.name as batch_export_name, run.team_id, run.model,
  export.destination_type, export.interval, export.timezone,
  ${destinationUri('run.batch_export_id', 'run.config_version')} as destination_uri, run.data_interval_start, run.data_interval_end, run.backfill_id,
  (select ${backfillTraceParent('backfill.id')} from exportd.backfills backfill
   where backfill.id = run.backfill_id and backfill.total_runs <= ${maxIntervalsInTrace}) as trace_parent`;

/** What an export has that may have no workflow yet. */
interface Startable {
  readonly runs: readonly StartableRun[];
  /** The ids of backfills. */
  readonly backfills: readonly string[];
}

/**
 * Reads the runs of a backfill that were created and not started. They are read from the read model, not returned by the step that
 * created them: if the result of that step is lost, the next step still starts them. Starting a run twice is harmless.
 */
export async function readStartableRunsOfBackfill(
  connection: Connection,
  backfillId: string,
): Promise<StartableRun[]> {
  const { rows } = await connection.query<StartableRun>(
    `select ${columns} from exportd.batch_export_runs run
     join exportd.batch_exports export on export.id = run.batch_export_id
     where run.backfill_id = $1 and run.retry_number = 0 and run.status = 'Starting' order by run.position`,
    [backfillId],
  );
  return rows;
}

/**
 * Reads those of an export which its schedule starts, and for the same reason its backfills of which no run has started. After 5 minutes the
 * reconciler has started them, so older ones are left out.
 */
export async function readStartable(pool: Pool, batchExportId: string): Promise<Startable> {
  const { rows } = await pool.query<
    { readonly backfills: readonly string[] } & (StartableRun | { readonly run_id: null })
  >(
    `select unstarted.backfills, startable.* from (
       select coalesce(array_agg(id::text order by position), '{}') as backfills from exportd.backfills backfill
       where batch_export_id = $1 and finished_at is null
         and created_at > clock_timestamp() - interval '5 minutes' and not exists (
           select from exportd.batch_export_runs run where run.backfill_id = backfill.id and run.status <> 'Starting')) unstarted
     left join (
       select ${columns}, run.position from exportd.batch_export_runs run
       join exportd.batch_exports export on export.id = run.batch_export_id
       where run.batch_export_id = $1 and (run.backfill_id is null or run.retry_number > 0) and run.status = 'Starting') startable on true
     order by startable.position`,
    [batchExportId],
  );
  return {
    runs: rows.filter((row) => row.run_id !== null),
    backfills: rows[0]?.backfills ?? [],
  };
}

/** Reads one run, whatever its status. */
export async function readStartableRun(pool: Pool, runId: string): Promise<StartableRun | undefined> {
  return (await readRuns(pool, [runId]))[0];
}

/** Reads runs by id, whatever their status. */
export async function readRuns(pool: Pool, runIds: readonly string[]): Promise<StartableRun[]> {
  if (runIds.length === 0) return [];
  const { rows } = await pool.query<StartableRun>(
    `select ${columns} from exportd.batch_export_runs run
     join exportd.batch_exports export on export.id = run.batch_export_id where run.id = any($1)`,
    [runIds],
  );
  return rows;
}

import * as z from 'zod';
import { describeOpenCircuit, destinationUnavailable, type OpenCircuit } from '../../domain/circuit.ts';
import { activeRunStatuses, isActiveStatus, type RunStatus } from '../../domain/run_state.ts';
import type { Connection, Pool } from '../../journal/database.ts';
import { ApiError, notFound } from '../api_error.ts';
import { countRows, cursorTime, decodeCursor, encodeCursor, pageOf } from '../paging.ts';
import type { RunResponse, RunsQuery } from './schema.ts';

/** What a run may wait for, as read from the database. */
export interface WaitColumns {
  /** The open circuit of an active run's destination. */
  readonly open_circuit: OpenCircuit | null;
  /** The operator's fault that an active run waits for. */
  readonly operator_fault: {
    readonly type: string;
    readonly message: string;
    readonly waiting_since: string;
  } | null;
}

const active = activeRunStatuses.map((status) => `'${status}'`).join(', ');

/**
 * SQL: the `WaitColumns` of a run. They are joined when a run is read, so that no outage writes to each run that waits.
 * @param run the name of exportd.batch_export_runs in the statement
 */
export const waitColumns = (run: string): string => `case when ${run}.status in (${active}) then (
  select json_build_object('error', circuit.error, 'opened_at', circuit.opened_at, 'next_probe_at', circuit.next_probe_at)
  from exportd.destination_configs config
  join exportd.destination_circuits circuit on circuit.destination = config.circuit and circuit.opened_at is not null
  where config.batch_export_id = ${run}.batch_export_id and config.version = ${run}.config_version
) end as open_circuit, case when ${run}.status in (${active}) then (
  select json_build_object('type', fault.type, 'message', fault.message, 'waiting_since', waiting.waiting_since)
  from exportd.operator_fault_runs waiting
  join exportd.operator_faults fault on fault.id = waiting.fault_id and fault.resolved_at is null
  where waiting.run_id = ${run}.id and waiting.resumed_at is null
) end as operator_fault`;

const isoTime = (time: string): string => new Date(time).toISOString();

/** Says what a run waits for, as `type: message`; null when it does not wait. */
export function describeWait({ open_circuit, operator_fault }: WaitColumns): string | null {
  if (operator_fault) {
    const { type, message, waiting_since } = operator_fault;
    return `${type}: ${message} Waiting for the operator since ${isoTime(waiting_since)}.`;
  }
  if (!open_circuit) return null;
  const { error, opened_at, next_probe_at } = open_circuit;
  return `${destinationUnavailable}: ${describeOpenCircuit({ error, opened_at: isoTime(opened_at), next_probe_at: isoTime(next_probe_at) })}`;
}

/** What a run waits for that is to be cancelled after publishing was claimed. */
const cancelRequested =
  'CancelRequested: The run was publishing. It is cancelled once the bucket shows that its manifest is not there, and completes otherwise.';

/** What a run says that has published nothing. */
const unchanged =
  'Unchanged: nothing was published. The bucket has these rows already; a backfill with `rewrite` writes them anew.';

/** Returns the URL of a run's workflow in the Temporal UI; null when no UI is configured. */
export type RunLink = (run: RunRow) => string | null;
/** Returns the URL of the list of an export's workflows in the Temporal UI; null when no UI is configured. */
export type ExportLink = (batchExportId: string) => string | null;

/** A run as stored in the read model. */
export interface RunRow
  extends WaitColumns, Omit<RunResponse, 'batch_export' | 'generation' | 'status_detail' | 'temporal_ui'> {
  readonly position: number;
  readonly batch_export_id: string;
  readonly generation: number;
  readonly cancel_requested: boolean;
}

/** The columns of a `RunRow`, of exportd.batch_export_runs without an alias. */
export const runColumns = `id, position, batch_export_id, status, records_completed, records_total_count, latest_error,
  data_interval_start, data_interval_end, cursor, created_at, finished_at, last_updated_at, bytes, files, generation,
  manifest_key, backfill_id, allow_shrink, cancel_requested, ${waitColumns('batch_export_runs')}`;

/** Converts a run to a response, whose schema leaves out what else the row has. */
export const toRunResponse = (run: RunRow, linkOf: RunLink): RunResponse => {
  const { batch_export_id, open_circuit, operator_fault, cancel_requested, ...fields } = run;
  const wait = describeWait({ open_circuit, operator_fault });
  const isCancelling = cancel_requested && isActiveStatus(run.status);
  const waits = isCancelling ? `${cancelRequested}${wait === null ? '' : ` ${wait}`}` : wait;
  return {
    ...fields,
    status_detail: run.status === 'Completed' && run.manifest_key === null ? unchanged : waits,
    latest_error: waits ?? run.latest_error,
    batch_export: batch_export_id,
    generation: run.generation === 0 ? null : run.generation,
    temporal_ui: linkOf(run),
  };
};

/**
 * Reads a run of an export.
 * @throws ApiError 404, and 410 when its history was collapsed: only the row of its interval in the ledger is left
 */
export async function requireRun(
  database: Pool | Connection,
  { batch_export_id, id }: { readonly batch_export_id: string; readonly id: string },
): Promise<RunRow> {
  const { rows } = await database.query<RunRow>(
    `select ${runColumns} from exportd.batch_export_runs where batch_export_id = $1 and id = $2`,
    [batch_export_id, id],
  );
  const [run] = rows;
  if (run) return run;
  const { rows: collapsed } = await database.query<{ start: string; end: string }>(
    `select data_interval_start as start, data_interval_end as end from exportd.intervals
     where batch_export_id = $1 and collapsed_generation is not null and (manifest_run_id = $2 or run_id = $2)`,
    [batch_export_id, id],
  );
  const [interval] = collapsed;
  if (!interval) throw notFound();
  throw new ApiError(
    410,
    'history_collapsed',
    `The history of this run was collapsed, because it is older than EXPORTD_HISTORY_RETENTION. What is left is the entry of ` +
      `its interval, ${interval.start} to ${interval.end}. To export the interval again, request a backfill of it.`,
  );
}

/** The newest runs of each export, newest first. */
export async function latestRuns(
  pool: Pool,
  batchExportIds: readonly string[],
  perExport: number,
): Promise<RunRow[]> {
  const { rows } = await pool.query<RunRow>(
    `select newest.* from unnest($1::uuid[]) as export (id) cross join lateral (
       select ${runColumns} from exportd.batch_export_runs
       where batch_export_id = export.id order by position desc limit $2) newest
     order by newest.position desc`,
    [batchExportIds, perExport],
  );
  return rows;
}

/** The row after which a page begins, and whether the page is read backwards from there. */
const cursorSchema = z.tuple([z.int(), cursorTime, z.boolean()]);

/** A page of runs. */
interface RunPage {
  readonly count: number;
  readonly rows: readonly RunRow[];
  /** Cursors of the adjacent pages, or null. */
  readonly next: string | null;
  readonly previous: string | null;
}

const cursorOf = (run: RunRow, backwards: boolean): string =>
  encodeCursor(run.position, run.data_interval_start, backwards);

/** Reads a page of an export's runs with keyset pagination, so that new runs do not shift later pages. */
export async function readRunPage(
  pool: Pool,
  batchExportId: string,
  query: Omit<RunsQuery, 'status' | 'cursor'> & {
    readonly statuses: readonly RunStatus[] | undefined;
    readonly cursor: string | undefined;
  },
): Promise<RunPage> {
  const [position, start, backwards = false] =
    query.cursor === undefined ? [] : decodeCursor(query.cursor, cursorSchema);
  const descending = query.ordering.startsWith('-') !== backwards;
  // `created_at` sorts by the position of the RunCreated event in the journal, which has no ties.
  const keys = query.ordering.endsWith('created_at') ? ['position'] : ['data_interval_start', 'position'];
  const conditions = ['batch_export_id = $1'];
  const values: unknown[] = [batchExportId];
  const where = (condition: (parameter: string) => string, value: unknown) => {
    values.push(value);
    conditions.push(condition(`$${values.length}`));
  };
  if (query.statuses) where((parameter) => `status = any(${parameter})`, query.statuses);
  // Responses have milliseconds: a run whose `created_at` reads the same is neither after nor before it.
  if (query.after)
    where((parameter) => `created_at >= ${parameter}::timestamptz + interval '1 millisecond'`, query.after);
  if (query.before) where((parameter) => `created_at < ${parameter}`, query.before);
  if (query.start) where((parameter) => `data_interval_start >= ${parameter}`, query.start);
  if (query.end) where((parameter) => `data_interval_end <= ${parameter}`, query.end);
  if (query.created_by)
    conditions.push(`backfill_id is ${query.created_by === 'backfill' ? 'not ' : ''}null`);
  const count = await countRows(
    pool,
    `from exportd.batch_export_runs where ${conditions.join(' and ')}`,
    values,
  );
  if (query.cursor !== undefined) {
    const comparison = descending ? '<' : '>';
    const parameters = keys.map((key) => {
      values.push(key === 'position' ? position : start);
      return key === 'position' ? `$${values.length}::bigint` : `$${values.length}::timestamptz`;
    });
    conditions.push(`(${keys.join(', ')}) ${comparison} (${parameters.join(', ')})`);
  }
  values.push(query.limit + 1);
  const direction = descending ? 'desc' : 'asc';
  const { rows } = await pool.query<RunRow>(
    `select ${runColumns} from exportd.batch_export_runs where ${conditions.join(' and ')}
     order by ${keys.map((key) => `${key} ${direction}`).join(', ')} limit $${values.length}`,
    values,
  );
  const { page, next, previous } = pageOf(rows, query.limit, {
    backwards,
    continued: query.cursor !== undefined,
  });
  return {
    count,
    rows: page,
    next: next && cursorOf(next, false),
    previous: previous && cursorOf(previous, true),
  };
}

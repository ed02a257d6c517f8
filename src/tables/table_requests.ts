/** What people ask of the table of an export. A worker answers, and the answer is stored beside the request. */
import { bounds } from '../config/bounds.ts';
import { inTransaction, type Pool } from '../journal/database.ts';

const tableOperations = ['describe', 'history', 'check', 'repair'] as const;
export type TableOperation = (typeof tableOperations)[number];

/** A request, and what a worker found. */
export interface TableRequest {
  readonly id: string;
  readonly batch_export_id: string;
  readonly operation: TableOperation;
  readonly parameters: { readonly before?: number | null; readonly limit?: number };
  readonly result: Readonly<Record<string, unknown>> | null;
  /** Why it failed, for users. */
  readonly error: string | null;
  readonly finished_at: string | null;
}

/** What a repair did. */
export interface TableRepairOutcome {
  /** The version that it wrote; null if the table is what its manifests say. */
  readonly version: number | null;
  readonly adds: number;
  readonly removes: number;
}

/** Minutes after which a request without a result no longer counts. */
const maxMinutes = 60;
const isUnfinished = `finished_at is null and created_at > clock_timestamp() - interval '${maxMinutes} minutes'`;

/** Stores a request and returns its id; null while too many others are unfinished. */
export const requestTable = (
  pool: Pool,
  request: Pick<TableRequest, 'batch_export_id' | 'operation' | 'parameters'> & {
    readonly team_id: number;
  },
): Promise<string | null> =>
  inTransaction(pool, async (connection) => {
    // Concurrent requests exceed no limit together.
    await connection.query('lock table exportd.table_requests in share row exclusive mode');
    const { rows } = await connection.query<{ id: string }>(
      `insert into exportd.table_requests (batch_export_id, team_id, operation, parameters)
       select $1, $2::integer, $3, $4
       from (select count(*) as unfinished, count(*) filter (where team_id = $2) as of_project
         from exportd.table_requests where ${isUnfinished}) running
       where unfinished < ${bounds.tableRequests.max} and of_project < ${bounds.tableRequestsOfProject.max}
       returning id`,
      [request.batch_export_id, request.team_id, request.operation, JSON.stringify(request.parameters)],
    );
    return rows[0]?.id ?? null;
  });

/** Reads a request by its id; undefined if it does not exist. */
export async function findTableRequest(pool: Pool, id: string): Promise<TableRequest | undefined> {
  const { rows } = await pool.query<TableRequest>(
    `select id, batch_export_id, operation, parameters, result, error, finished_at
     from exportd.table_requests where id = $1`,
    [id],
  );
  return rows[0];
}

/** Stores what a worker found, or why it found nothing. */
export async function recordTableResult(
  pool: Pool,
  id: string,
  outcome: { readonly result: object } | { readonly error: string },
): Promise<void> {
  await pool.query(
    `update exportd.table_requests set result = $2, error = $3, finished_at = clock_timestamp()
     where id = $1 and finished_at is null`,
    [
      id,
      'result' in outcome ? JSON.stringify(outcome.result) : null,
      'error' in outcome ? outcome.error : null,
    ],
  );
}

/** Deletes a request that no client waits for. */
export async function withdrawTableRequest(pool: Pool, id: string): Promise<void> {
  await pool.query('delete from exportd.table_requests where id = $1 and finished_at is null', [id]);
}

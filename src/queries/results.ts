import { randomUUID } from 'node:crypto';
import type { Pool } from '../journal/database.ts';
import type { ComputedOutput } from './query_executor.ts';

/** A stored result, without its output. */
export interface QueryResult {
  readonly id: string;
  readonly cache_key: string;
  readonly computed_at: Date;
  /** Milliseconds until clients should request a refresh. */
  readonly next_refresh_ms: number;
}

/** A result with its output, the same for every caller. It is never parsed: it can be large. */
export interface QueryResultOutput extends QueryResult {
  /** A JSON object. */
  readonly json: Uint8Array;
}

interface ResultRow extends Omit<QueryResult, 'computed_at'> {
  readonly computed_at: string;
}

const columns = 'id, cache_key, computed_at, next_refresh_ms';
const resultOf = (row: ResultRow): QueryResult => ({ ...row, computed_at: new Date(row.computed_at) });

/** Stores an output. The newest result of a cache key is the cached one. */
export async function storeResult(
  pool: Pool,
  result: ComputedOutput & { readonly team_id: number; readonly cache_key: string },
): Promise<QueryResultOutput> {
  const { team_id, cache_key, json, next_refresh_ms } = result;
  const { rows } = await pool.query<ResultRow>(
    `insert into exportd.query_results (id, team_id, cache_key, output, next_refresh_ms)
     values ($1, $2, $3, $4, $5) returning ${columns}`,
    // A Buffer is sent as it is.
    [
      randomUUID(),
      team_id,
      cache_key,
      Buffer.from(json.buffer, json.byteOffset, json.byteLength),
      next_refresh_ms,
    ],
  );
  const [stored] = rows;
  if (!stored) throw new Error('The insert of a query result returned no row.');
  return { ...resultOf(stored), json };
}

/** The cached result of a key, unless it is older than `maxAgeMs`. */
export async function findCached(
  pool: Pool,
  key: { readonly team_id: number; readonly cache_key: string; readonly maxAgeMs: number },
): Promise<QueryResult | undefined> {
  const { rows } = await pool.query<ResultRow>(
    `select ${columns} from exportd.query_results
     where team_id = $1 and cache_key = $2 and computed_at > clock_timestamp() - $3 * interval '1 millisecond'
     order by computed_at desc limit 1`,
    [key.team_id, key.cache_key, key.maxAgeMs],
  );
  return rows[0] && resultOf(rows[0]);
}

/** A stored result with its output; undefined if it has been deleted in the meantime. */
export async function loadOutput(
  pool: Pool,
  teamId: number,
  id: string,
): Promise<QueryResultOutput | undefined> {
  const { rows } = await pool.query<ResultRow & { output: string }>(
    `select ${columns}, output::text as output from exportd.query_results where team_id = $1 and id = $2`,
    [teamId, id],
  );
  const [row] = rows;
  if (!row) return undefined;
  const { output, ...result } = row;
  return { ...resultOf(result), json: Buffer.from(output) };
}

import { randomUUID } from 'node:crypto';
import type { Pool } from '../journal/database.ts';
import type { OutputResults } from './query_kind.ts';

/** A stored output, the same for every caller. */
export interface StoredOutput {
  readonly results: OutputResults;
  readonly columns: readonly string[] | null;
  readonly types: readonly unknown[] | null;
  readonly hasMore: boolean;
  readonly limit: number | null;
  readonly offset: number | null;
  readonly dialect_query: string | null;
  /** A message for the user about the result as a whole, such as how to get the remaining rows. */
  readonly notice: string | null;
  readonly timezone: string;
  /** Milliseconds until clients should request a refresh. */
  readonly next_refresh_ms: number;
  /** Additional response fields of the kind. */
  readonly more: Readonly<Record<string, unknown>>;
}

/** A stored result, without its output. */
export interface QueryResult {
  readonly id: string;
  readonly cache_key: string;
  readonly computed_at: Date;
}

interface ResultRow extends Omit<QueryResult, 'computed_at'> {
  readonly computed_at: string;
}

const columns = 'id, cache_key, computed_at';
const resultOf = (row: ResultRow): QueryResult => ({ ...row, computed_at: new Date(row.computed_at) });

/** Stores an output, given as JSON. The newest result of a cache key is the cached one. */
export async function storeResult(
  pool: Pool,
  result: { readonly team_id: number; readonly cache_key: string; readonly json: string },
): Promise<QueryResult> {
  const { rows } = await pool.query<ResultRow>(
    `insert into exportd.query_results (id, team_id, cache_key, output) values ($1, $2, $3, $4)
     returning ${columns}`,
    [randomUUID(), result.team_id, result.cache_key, result.json],
  );
  const [stored] = rows;
  if (!stored) throw new Error('The insert of a query result returned no row.');
  return resultOf(stored);
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
): Promise<(QueryResult & { readonly output: StoredOutput }) | undefined> {
  const { rows } = await pool.query<ResultRow & { output: StoredOutput }>(
    `select ${columns}, output from exportd.query_results where team_id = $1 and id = $2`,
    [teamId, id],
  );
  const [row] = rows;
  return row && { ...resultOf(row), output: row.output };
}

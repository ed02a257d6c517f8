import { randomUUID } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import { inTransaction, type Pool } from '../journal/database.ts';
import type { ComputedOutput } from './query_executor.ts';

/** Bytes of a part. Copying one takes about a millisecond, while copying 32 MiB would stop the server. */
const partSize = 2 ** 20;

/** Splits an output in UTF-8 into parts that are text each. At least one. */
export function outputParts(output: Uint8Array): readonly Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let start = 0; start < output.length || parts.length === 0;) {
    let end = Math.min(start + partSize, output.length);
    while (end < output.length && isContinuation(output[end])) end -= 1;
    parts.push(output.subarray(start, end));
    start = end;
  }
  return parts;
}

/** Whether a byte is not the first one of a character. */
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** A stored result, without its output. */
export interface QueryResult {
  readonly id: string;
  readonly cache_key: string;
  readonly computed_at: Date;
  /** Milliseconds until clients should request a refresh. */
  readonly next_refresh_ms: number;
}

/** A result with its output, the same for every caller. It is never parsed or copied as a whole: it can be large. */
export interface QueryResultOutput extends QueryResult {
  /** Parts of a JSON object. */
  readonly json: readonly Uint8Array[];
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
  const parts = outputParts(json);
  const [first = json, ...others] = parts;
  const insert = async (connection: Pick<Pool, 'query'>): Promise<ResultRow> => {
    const { rows } = await connection.query<ResultRow>(
      `with result as (
         insert into exportd.query_results (id, team_id, cache_key, part_count, next_refresh_ms)
         values ($1, $2, $3, $4, $5) returning ${columns}
       ), part as (insert into exportd.query_result_parts (result_id, number, content) values ($1, 0, $6))
       select * from result`,
      [randomUUID(), team_id, cache_key, parts.length, next_refresh_ms, asBuffer(first)],
    );
    const [stored] = rows;
    if (!stored) throw new Error('The insert of a query result returned no row.');
    return stored;
  };
  if (others.length === 0) return { ...resultOf(await insert(pool)), json: parts };
  return inTransaction(pool, async (connection) => {
    const stored = await insert(connection);
    for (const [index, part] of others.entries())
      await connection.query(
        'insert into exportd.query_result_parts (result_id, number, content) values ($1, $2, $3)',
        [stored.id, index + 1, asBuffer(part)],
      );
    return { ...resultOf(stored), json: parts };
  });
}

/** A Buffer is sent as it is. */
const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

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
  const { rows } = await pool.query<ResultRow & { part_count: number; content: string }>(
    `select ${columns}, part_count, content from exportd.query_results
     join exportd.query_result_parts on result_id = id and number = 0 where team_id = $1 and id = $2`,
    [teamId, id],
  );
  const [row] = rows;
  if (!row) return undefined;
  const { part_count, content, ...result } = row;
  const json: Uint8Array[] = [Buffer.from(content)];
  for (let number = 1; number < part_count; number += 1) {
    const part = await loadPart(pool, id, number);
    if (part === undefined) return undefined;
    json.push(part);
  }
  return { ...resultOf(result), json };
}

async function loadPart(pool: Pool, id: string, number: number): Promise<Buffer | undefined> {
  const { rows } = await pool.query<{ content: string }>(
    'select content from exportd.query_result_parts where result_id = $1 and number = $2',
    [id, number],
  );
  return rows[0] && Buffer.from(rows[0].content);
}

/** How long a query that never ended is kept; much longer than any query runs. */
const abandonedAfter = "interval '1 day'";

/**
 * Deletes expired statuses, rate-limiter requests older than an hour, and results that no status refers to and that are
 * too old for the cache or superseded by a newer one.
 * @returns the number of deleted statuses and results.
 */
export async function deleteExpiredQueries(
  pool: Pool,
  settings: Pick<Settings, 'EXPORTD_QUERY_CACHE_TTL'>,
): Promise<number> {
  const statuses = await pool.query(
    `delete from exportd.queries where expiration_time < clock_timestamp()
       or (end_time is null and start_time < clock_timestamp() - ${abandonedAfter})`,
  );
  const results = await pool.query(
    `delete from exportd.query_results result
     where not exists (select from exportd.queries where result_id = result.id)
       and (computed_at < clock_timestamp() - $1 * interval '1 millisecond' or exists (
         select from exportd.query_results newer
         where newer.team_id = result.team_id and newer.cache_key = result.cache_key
           and newer.computed_at > result.computed_at and newer.computed_at < clock_timestamp() - interval '1 minute'))`,
    [settings.EXPORTD_QUERY_CACHE_TTL],
  );
  await pool.query(
    `delete from exportd.query_requests where requested_at < clock_timestamp() - interval '1 hour'`,
  );
  return (statuses.rowCount ?? 0) + (results.rowCount ?? 0);
}
